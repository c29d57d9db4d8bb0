"""Schedulers: agents that learn how many actors another agent's training gets; trained here, stored, and chosen in jobs."""
