"""Reinforcement learning: algorithms, environments, networks, and what is measured of a policy."""
