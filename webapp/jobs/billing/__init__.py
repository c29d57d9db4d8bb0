"""A job's bill: its burn rate, its cost by part, round and call, and its cost on other clouds."""
