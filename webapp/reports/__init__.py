"""Reports of cost: one query layer, five kinds of file, schedules, and clouds' own bills. Begin with `table.py`."""
