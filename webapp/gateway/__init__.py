"""Machines and containers that fetch their calls: the mailbox in the database, and the door that pullers come to."""
