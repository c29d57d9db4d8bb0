"""A user's account in a cloud: its connection, its rights, its set-up, and what runs in it and bills."""
