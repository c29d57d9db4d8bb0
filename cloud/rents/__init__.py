"""Rent of what stands, whether or not anybody uses it."""
