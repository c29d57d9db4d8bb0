"""What a launch needs and will come to: the check-list beside the form, preflight, forecasts, room in budgets."""
