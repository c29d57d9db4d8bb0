"""Pages and forms of budgets. `webapp/money` has their tables and rules; this app also reads the jobs under each
budget."""
