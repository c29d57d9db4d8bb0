"""The client that people take away: one file, which needs Python alone."""
