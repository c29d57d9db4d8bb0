"""Jobs, groups and sweeps beside each other, and what to conclude: pages of comparisons, and dollars to the goal.

`abtests/` asks whether a finished job is better with one change, `predictions/` what a running job would do with other
actors or another limit, and `papers/` shows experiments.
"""
