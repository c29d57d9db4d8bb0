"""Pages of projects: made, renamed, archived.

`webapp/accounts` has their table; this app also reads what runs in them.
"""
