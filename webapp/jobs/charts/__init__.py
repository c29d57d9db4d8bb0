"""What the charts of a job page are drawn from: its rounds as columns, its evaluations, and marks of what happened.

`columns` says what is read of a round's report, `history` holds a job's columns and follows its events, `buckets`
makes them fit a screen without hiding a spike, and `series` is what pages are sent.
"""
