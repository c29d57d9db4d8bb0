"""What was counted against limits: shared by all processes, and kept when they are started again.

`shared_cache` is the cache that allauth counts attempts in; its rows are `models.Counted`.
"""
