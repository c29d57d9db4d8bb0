"""Forecasts of a job's time and cost, from a dry run of a few rounds that neither sample nor learn."""
