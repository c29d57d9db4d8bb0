"""The overview of a project: running jobs, cost, alerts and results; and search over the project."""
