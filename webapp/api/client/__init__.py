"""The client that people download, `starling.py`, and the command around it, which is packed as one file.

They need only Python, 3.9 or later, and import nothing else of the project.
"""

from .starling import Starling, StarlingError

__all__ = ["Starling", "StarlingError"]
