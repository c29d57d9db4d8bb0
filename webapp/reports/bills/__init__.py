"""Clouds' own bills: read line by line, kept, and compared with what we metered."""
