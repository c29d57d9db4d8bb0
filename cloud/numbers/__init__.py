"""Numbers that somebody can check: profiles of clouds, stacks, machines, their ranges and files."""
