"""The data of a job's charts: its rounds as columns, its evaluations, and marks of what happened.

`figures` names what is read from a round's report, `history` keeps a job's columns up to date with its
events and reduces them to the width of a screen without hiding a spike.
"""
