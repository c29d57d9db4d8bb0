"""Sets cloud accounts up for actors and removes everything again; rights, policies and regions."""
