"""MinionsRL: an agent that learns to decide how many actors each round of another agent's training gets.

state (eight numbers of the last round) · action (how many actors) · reward (less for each second, or dollar)
"""
