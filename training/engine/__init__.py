"""The engine: events out of a spec and a platform, the doors to platforms, what goes through them, and what is kept."""
