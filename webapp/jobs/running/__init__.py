"""A job's process: its lease, its heart, what it records, and who brings it back."""
