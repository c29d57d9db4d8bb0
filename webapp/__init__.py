"""The dashboard: the only Django code, and the only place where training and cloud meet. Begin with `urls.py`."""
