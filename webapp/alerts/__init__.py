"""Alerts: what raises them, what people do about them, and the channels that send them."""
