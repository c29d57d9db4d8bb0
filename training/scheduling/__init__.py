"""Agents that learn to scale another agent's training: what any of them needs, and one folder for each publication's.

workload (what is trained) · scheduler (the agent that decides) · episode (one whole training of the workload) → states,
actions and rewards, which `decisions.Decisions` reads from rounds: `minionsrl/` decides how many actors, `siren/` how
many functions and how much memory each has
"""
