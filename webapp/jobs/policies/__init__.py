"""Policies of a job's checkpoints: listed, downloaded, filmed."""
