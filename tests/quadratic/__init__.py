"""A kind of training for tests alone: it fits a quadratic, and its score is a loss that goes down.

`calls.py` is its kinds of calls, `task.py` its spec, its figures and its task: one file and one row each, which
`copied.py` adds to a copy of the code. `in_copy.py` holds the tests that run there.
"""
