"""Random streams that depend on their purpose, never on the order of requests."""

from __future__ import annotations

import hashlib


def derive(seed: int, *labels: str | int) -> int:
    """Return a 63-bit seed for `labels`. Different labels give unrelated streams."""
    text = "/".join(str(part) for part in (seed, *labels))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
