"""The dashboard: the only Django code, and the only place where training and cloud meet. Begin with `urls.py`.

`accounts/` says who may do what, `jobs/` is the largest app; `pyproject.toml` lists all from the top layer down. Rooms
without pages: `http/` for requests, `database/` for faults, snapshots and leases, `processes/` for what an installation
runs. `tasks.py` has the worker's tasks, `background.py` the life cycle of work beside jobs.
"""
