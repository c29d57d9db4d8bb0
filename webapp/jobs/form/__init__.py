"""A job's form: presets, drafts, specs as files, and the problems of a spec as sentences."""
