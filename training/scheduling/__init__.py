"""MinionsRL: an agent that learns to decide how many actors each round of another agent's training gets.

workload (what is trained) · scheduler (the agent that decides) · episode (one whole training of the workload) → state
(eight numbers of the last round) · action (how many actors) · reward (less for each second, or dollar)
"""
