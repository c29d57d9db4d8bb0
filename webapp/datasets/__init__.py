"""Data sets: tables that people upload, read by the worker, and kept as shards that jobs learn from."""
