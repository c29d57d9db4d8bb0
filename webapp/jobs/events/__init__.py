"""A job's events: their rows, their texts, and the live feed to viewers."""
