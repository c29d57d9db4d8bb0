"""A/B tests: a finished job against itself with one change, over the same seeds, ended early by a sequential test.

Begin with `services` (what people do) and `engine` (what the worker does every few seconds).
"""
