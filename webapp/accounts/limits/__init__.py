"""Counters for rate limits. All processes share them, and they outlive a restart."""
