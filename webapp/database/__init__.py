"""The database as this installation uses it: its faults, who reads and writes when, and leases held in it."""
