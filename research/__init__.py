"""Experiments: questions declared as data before anything runs, their runs, and what may be said of the outcome.

`experiments/` holds one question a file, as an `Experiment` (`experiment.py`); `calculations/` the figures that need no
training. `manage.py papers run NAME` trains (`runs/`), `manage.py papers report NAME` judges (`reports/`) and writes
research/results, which the dashboard's Papers pages read (webapp/comparing/papers). There are no models: files
outlive any database.
"""
