"""The list of jobs: a question, columns, saved views, and what is done to many."""
