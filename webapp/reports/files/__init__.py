"""Reports as files: a kind a module, and FOCUS' rules."""
