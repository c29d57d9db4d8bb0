"""What a launch needs and what it will cost: checklist, preflight, forecasts, room in budgets."""
