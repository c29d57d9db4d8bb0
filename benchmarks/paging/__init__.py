"""What `pages` works on: a project of many jobs, and a person's session there."""
