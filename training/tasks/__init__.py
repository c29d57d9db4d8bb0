"""Kinds of training. Begin with `task.py`, the port between the engine and a kind; each kind is a file here and a row
of `kinds.py`.

`training.py` is what the spec of every kind answers, `score.py` what a kind is judged by.
"""
