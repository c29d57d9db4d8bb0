"""Clouds on this machine: control and data planes for the vendors' own SDKs. Calls to them are really executed."""
