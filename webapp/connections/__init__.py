"""Connections to clouds: what is known of an account there, with its secrets sealed."""
