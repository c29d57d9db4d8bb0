"""Rent of standing resources, used or not."""
