"""Processes and the thread of this machine in which bodies really run."""
