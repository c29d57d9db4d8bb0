"""Dollars to the goal: what it took each algorithm, scaling policy and cloud to get to a task's reference.

`results` reads each finished job once, and the stored experiments; `board` gathers a project's rows.
"""
