"""Schedulers: agents that learn how many actors another training gets; trained here, stored, and chosen in jobs."""
