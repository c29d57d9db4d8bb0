"""Money: what a job may spend, what it has set aside, and what each call came to."""
