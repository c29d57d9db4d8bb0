"""The measurements, one part a file: `measure(...)` takes and returns JSON values, in its own process.

Pure computation is measured in processor time, which other processes hardly change; waiting and transfers in
wall-clock time.
"""
