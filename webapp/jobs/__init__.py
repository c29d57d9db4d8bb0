"""Jobs: their form, launch, process, events, live pages and bills. Begin with `models`, `services` and
`running/runner`."""
