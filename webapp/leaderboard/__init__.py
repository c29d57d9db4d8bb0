"""Dollars to the goal: what it took each algorithm, scaling policy and cloud to get to a task's reference.

`results` reads each finished job once; `board` gathers a project's rows; `measured` those of the stored experiments.
"""
