"""The list of jobs: search, columns, saved views, and bulk actions."""
