"""Counters for rate limits. All processes share them, and they outlive a restart.

Rows are `models.Counted`. `shared_cache` counts attempts for allauth; `request_rate` limits API tokens.
"""
