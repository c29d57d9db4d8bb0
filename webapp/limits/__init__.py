"""What was counted against limits: shared by all processes, and kept when they are started again.

Rows are `models.Counted`. `shared_cache` is the cache that allauth counts attempts in, `pace` what API tokens may ask.
"""
