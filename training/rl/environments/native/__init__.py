"""Environments stepped without Gymnasium's Python around them, equal to Gymnasium's bit for bit.

`families.py` has the table: one row and one small file a family. `copies.py` steps the copies of a slot. A copy is made
from Gymnasium's own environment: it reads that environment's arguments and moves its simulation. So the environment can
save its state, draw itself or continue alone at any time.
"""
