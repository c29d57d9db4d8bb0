"""The client that people take away, `starling.py`, and the command around it, which is packed as one file.

They need Python alone, 3.9 or later, and import nothing else of the project.
"""

from .starling import Starling, StarlingError

__all__ = ["Starling", "StarlingError"]
