"""What only a real account can settle.

In the suite these run on the emulated clouds; `make test-accounts` runs the same on an account of yours that the
environment names (docs/clouds.md), for a few cents at most.
"""
