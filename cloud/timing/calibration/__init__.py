"""Calibration: measures this machine, for a stack's entries and a profile.

`cloud.timing.calibration.run_parts.calibration` runs the parts, each in its own process, and composes a stack and a
profile.
"""
