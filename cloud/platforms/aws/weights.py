"""Weights for functions: small ones in the call, large ones at an address from which each process reads them once."""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from cloud.actor.blobs import BlobShelf
from cloud.platforms.aws.error_text import refusal
from training.engine.messages import BlobRef, Call

INLINE_LIMIT_BYTES = 2**20
_OBJECTS_KEPT = 8
_ADDRESS_HOLDS_S = 3600


class AwsWeights:
    """The last published versions, and those that calls in flight name.

    Objects of one run have a folder of their own in the bucket and are deleted with it. `failure` says why the bucket
    did not take or delete one; the next that it takes clears it.
    """

    def __init__(
        self, s3: Any, bucket: str | None, folder: str, inline_limit_bytes: int = INLINE_LIMIT_BYTES
    ) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._folder = folder
        self._inline_limit_bytes = inline_limit_bytes
        self._shelf = BlobShelf()
        self._stored: set[str] = set()
        self._base64_by_sha256: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()
        self.failure = ""

    def publish(self, version: int, blob: bytes, in_flight: Iterable[Call] = ()) -> BlobRef:
        """Large ones are stored at once. If that fails they go inline, as far as they fit."""
        ref = self._shelf.publish(version, blob, in_flight)
        if self._bucket is not None and len(blob) > self._inline_limit_bytes:
            self._store(ref, blob)
        return ref

    def bytes_of(self, call: Call) -> bytes | None:
        """Return the bytes that `call` names, or None if it names none. Raises MissingWeights."""
        return self._shelf.weights_of(call)

    def of(self, call: Call) -> tuple[bytes | None, str | None]:
        """Return the bytes in base64, or the address, for a call. Raises MissingWeights if they were not published.

        All calls of a version share one object, so a thousand calls in flight hold it once.
        """
        data = self._shelf.weights_of(call)
        if call.weights is None:
            return None, None
        address = self._address(call.weights.sha256)
        if address is not None or data is None:
            return None, address
        with self._lock:
            text = self._base64_by_sha256.get(call.weights.sha256)
            if text is None:
                text = self._base64_by_sha256[call.weights.sha256] = base64.b64encode(data)
                while len(self._base64_by_sha256) > _OBJECTS_KEPT:
                    self._base64_by_sha256.popitem(last=False)
            return text, None

    def close(self) -> None:
        """Delete all stored objects."""
        for sha256 in list(self._stored):
            self._drop(sha256)

    def _address(self, sha256: str) -> str | None:
        """Return an address that holds from now on; None if there is none. A call may wait for hours before it is
        sent, and no address outlives the session that signed it.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        if sha256 not in self._stored:
            return None
        place = {"Bucket": self._bucket, "Key": self._key(sha256)}
        try:
            address: str = self._s3.generate_presigned_url(
                "get_object", Params=place, ExpiresIn=_ADDRESS_HOLDS_S
            )
        except (ClientError, BotoCoreError) as error:
            self._note("can give no address", error)
            return None
        return address

    def _store(self, ref: BlobRef, blob: bytes) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._s3.put_object(Bucket=self._bucket, Key=self._key(ref.sha256), Body=blob)
        except (ClientError, BotoCoreError) as error:
            self._note("takes no network", error)
            return
        self.failure = ""
        self._stored.add(ref.sha256)
        for old in [sha256 for sha256 in self._stored if sha256 not in self._shelf]:
            self._drop(old)

    def _drop(self, sha256: str) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        self._stored.discard(sha256)
        try:
            self._s3.delete_object(Bucket=self._bucket, Key=self._key(sha256))
        except (ClientError, BotoCoreError) as error:
            self._note("keeps old networks for a day", error)

    def _note(self, what: str, error: Exception) -> None:
        why = refusal(error)
        self.failure = f"Bucket {self._bucket} {what}. {why.words} {why.fix}"

    def _key(self, sha256: str) -> str:
        return f"{self._folder}/{sha256}"
