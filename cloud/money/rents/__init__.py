"""Rent of rented resources, used or not."""
