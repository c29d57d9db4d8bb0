"""Tables that people upload, read piece by piece in a process with a memory limit (`__main__`).

`tables` opens a file: `csv_table` reads CSV, packed or not, `npz_table` NumPy's archives. `survey` describes all
columns, `choice` checks what a person chose to learn, `preparing` makes shards of it. What cannot be read raises
TableRefused with its row and column.
"""
