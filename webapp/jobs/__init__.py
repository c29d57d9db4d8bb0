"""Jobs: their form, launch, process, events, pages and bills. Begin with `models`, `services`, `running/runner`.

`reasons` says why a job is in its state, `scores` which score it is shown with.
"""
