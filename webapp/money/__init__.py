"""Money: what a job may spend, what it has reserved, and what each call cost. Begin with `ledger` and
`models`."""
