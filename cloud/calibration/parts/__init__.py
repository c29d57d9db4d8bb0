"""What is measured, one part a file: `measure(told)` takes and gives what JSON can hold, in a process of its own.

Work that only computes is measured in processor time, which others on the machine hardly change; waiting and ways in
time on the wall.
"""
