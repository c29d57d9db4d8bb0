"""Memory profiles: an environment run at several sizes of function, and the size that it should have."""
