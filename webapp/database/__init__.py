"""The database as installed: the version of its tables, its faults, who reads and writes when, leases held in it."""
