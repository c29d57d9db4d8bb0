"""Siren: an agent that learns to decide how many functions each epoch gets and how much memory each of them has.

state (nine numbers of the last epoch) · choices (from a network's two numbers to functions and memory) · decisions (how
a training is read as an episode) · arithmetic_cloud (epochs as arithmetic, fitted to recorded ones; rehearsals on it)
"""
