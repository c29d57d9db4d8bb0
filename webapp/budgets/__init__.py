"""Pages and forms of budgets. Their tables and rules are in `money`; here they meet the jobs below them."""
