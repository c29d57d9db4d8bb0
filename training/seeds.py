"""Random streams that depend on what they are for, never on who asked first."""

from __future__ import annotations

import hashlib


def derive(seed: int, *labels: str | int) -> int:
    """A 63-bit seed for the thing named by `labels`. Different labels give unrelated streams."""
    text = "/".join(str(part) for part in (seed, *labels))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
