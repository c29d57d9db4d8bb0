"""Numbers with sources: profiles of clouds, stacks, machines, their ranges and files."""
