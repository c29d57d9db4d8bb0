"""Pages and forms of budgets. `webapp/money` has their tables and rules, `cloud/money/metering.py` stops a run;
this app also reads the jobs under each budget.
"""
