"""Policies of a job's checkpoints: kept, taken away, filmed."""
