"""Machines and containers that pull their calls: the mailbox in the database, and the HTTP endpoint for pullers."""
