"""Measuring this machine: its entries of a stack, and itself as a profile.

`measuring.calibration` runs the parts, each in a process of its own, and puts a stack and a profile together;
`check` holds the simulated cloud with these numbers against real rounds.
"""
