"""A job's process: its lease, heartbeat and records, and the worker that starts and recovers it."""
