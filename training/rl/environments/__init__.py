"""Where agents live: which environments exist, what they look like, and how their state travels."""
