"""Experiments: questions declared as data before anything runs, their runs, and what may be said of the outcome.

`experiments/` holds one question a file. `manage.py papers run NAME` trains its arms, `manage.py papers report NAME`
writes `docs/results/NAME.md`. There are no models: files suffice, and outlive any database.
"""
