"""The window: the only Django code, and the only place where training and cloud meet."""
