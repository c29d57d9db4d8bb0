"""What is asked for: the form of a job, presets, drafts, specs as files, and what is wrong with them in words."""
