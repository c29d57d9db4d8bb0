"""JSON that somebody else wrote, of which only a few values are expected."""

from __future__ import annotations

import json
from typing import Any

VALUES_LIMIT = 10_000
_BEFORE_VALUES = (b"[", b"{", b",")


def read_few(text: bytes) -> Any:
    """What `text` holds. ValueError for what is no JSON, or may hold more than VALUES_LIMIT values.

    Two letters of JSON can become 64 bytes of memory, so the marks before values are counted first; those within texts
    count as well.
    """
    if sum(map(text.count, _BEFORE_VALUES)) > VALUES_LIMIT:
        raise ValueError(f"it may hold more than {VALUES_LIMIT} values")
    # As text: from bytes the library first guesses their encoding, which takes as long as reading it.
    try:
        return json.loads(text.decode())
    except RecursionError:
        raise ValueError("it is nested too deep") from None
