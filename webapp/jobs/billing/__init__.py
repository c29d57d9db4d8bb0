"""A job's bill: how fast it spends, what it cost by part, round and call, and what it would have cost elsewhere."""
