"""Clouds on this machine: control and data planes that the vendors' own SDKs talk to, and that execute what is sent."""
