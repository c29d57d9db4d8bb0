"""The figures Starling promises, measured. `manage.py bench` runs all; `manage.py bench startup` those it names.

A benchmark is one file here with a function `measure() -> Iterator[Figure]`; it is found by being there. One that can
be shortened takes `quick`.
"""
