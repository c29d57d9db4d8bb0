"""Published weights by hash, for the calls that name them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

from training.engine.messages import BlobRef, Call

_VERSIONS_KEPT = 8


class MissingWeights(LookupError):
    """A call names weights that were never published here, or that were dropped since."""


class BlobShelf:
    """The last few published blobs, and older ones as long as a call in flight names them: it may be sent again."""

    def __init__(self) -> None:
        self._by_sha256: OrderedDict[str, bytes] = OrderedDict()

    def publish(self, version: int, blob: bytes, in_flight: Iterable[Call] = ()) -> BlobRef:
        ref = BlobRef(version=version, sha256=hashlib.sha256(blob).hexdigest(), byte_count=len(blob))
        self._by_sha256[ref.sha256] = blob
        self._by_sha256.move_to_end(ref.sha256)
        if len(self._by_sha256) > _VERSIONS_KEPT:
            named = {call.weights.sha256 for call in in_flight if call.weights is not None}
            for old in list(self._by_sha256)[:-_VERSIONS_KEPT]:
                if old not in named:
                    del self._by_sha256[old]
        return ref

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._by_sha256

    def weights_of(self, call: Call) -> bytes | None:
        """Return the bytes that `call` names, or None if it names none. Raises MissingWeights if they are not here."""
        if call.weights is None:
            return None
        blob = self._by_sha256.get(call.weights.sha256)
        if blob is None:
            raise MissingWeights(f"the weights of version {call.weights.version} are not published here")
        return blob


def bytes_in(call: Call) -> int:
    """Return the bytes sent to a function: weights, the state that its slot keeps and other inputs."""
    weights = call.weights.byte_count if call.weights is not None else 0
    return weights + len(call.slot_state or b"") + sum(map(len, call.inputs))


def bytes_out(payload: bytes, slot_state: bytes | None) -> int:
    return len(payload) + len(slot_state or b"")
