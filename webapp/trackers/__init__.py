"""Experiment trackers: MLflow and Weights & Biases, where a project's runs are followed beside this dashboard.

A project sets a tracker once (`services`); its jobs then send every round there (`tracking.Stream`), each kind in a
file of its own (`mlflow`, `wandb`). Nothing of it can stop or slow a run: rounds wait in a bounded queue that a
thread empties.
"""
