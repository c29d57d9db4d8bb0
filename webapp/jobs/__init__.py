"""Jobs: their form, launch, process, events, pages and bills. Begin with `models`, `services`, `running/runner`."""
