"""Rounds of five shapes of a job, really and in virtual time: `shapes` compares them, `times` is run in a process."""
