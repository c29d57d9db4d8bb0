"""How runs are made and stored: `runner` starts a process a run, `seed_run` trains in it, `run_file` keeps its rows."""
