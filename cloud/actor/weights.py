"""Weights on an actor: inline or by address, fetched once for each version, and used only if their hash is right."""

from __future__ import annotations

import hashlib
import re
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Callable
from http.client import HTTPException
from urllib.parse import urlsplit

from cloud.actor.wire import ActorRequest, MalformedMessage
from training.engine.messages import BlobRef

_VERSIONS_KEPT = 2
_TRIES = 3
_TIMEOUT_S = 20.0
_ERROR_BYTES_READ = 4096
_MISSING_RIGHT = re.compile(rb"not authorized to perform: ([\w-]+:\w+)")
_HERE = frozenset({"127.0.0.1", "::1", "localhost"})

Fetch = Callable[[str, int], bytes]


class KeptWeights:
    """The last versions that this process used, by hash."""

    def __init__(self, fetch: Fetch | None = None) -> None:
        self._fetch = fetch or fetched
        self._by_sha256: OrderedDict[str, bytes] = OrderedDict()

    def of(self, request: ActorRequest) -> bytes | None:
        """Return the weights that the call names, or None if it names none. Raises Refusal if they cannot be fetched
        as they were published.
        """
        ref = request.call.weights
        if ref is None:
            return None
        kept = self._by_sha256.get(ref.sha256)
        if kept is not None:
            self._by_sha256.move_to_end(ref.sha256)
            return kept
        data = _checked(self._received(request, ref), ref)
        self._by_sha256[ref.sha256] = data
        while len(self._by_sha256) > _VERSIONS_KEPT:
            self._by_sha256.popitem(last=False)
        return data

    def _received(self, request: ActorRequest, ref: BlobRef) -> bytes:
        if request.weights is not None:
            return request.weights
        if request.weights_url is None:
            raise MalformedMessage(
                "weights", f"the call has neither version {ref.version} nor an address for it"
            )
        try:
            return self._fetch(request.weights_url, ref.byte_count)
        except (OSError, ValueError) as error:
            words = f"the weights of version {ref.version} could not be fetched: {_reason(error)}"
            raise MalformedMessage("weights", words) from None


def _reason(error: Exception) -> str:
    """Return the kind of error, and the right that the store names as missing.

    The address is a secret while it is valid, so the text does not repeat it.
    """
    if not isinstance(error, urllib.error.HTTPError):
        return type(error).__name__
    kind = f"{type(error).__name__} {error.code}"
    try:
        named = _MISSING_RIGHT.search(error.read(_ERROR_BYTES_READ))
    except (OSError, HTTPException):  # the words did not come whole
        named = None
    right = named[1].decode() if named else ""
    return (
        f"{kind}; add {right} to the connection's policy, or copy the whole policy again" if right else kind
    )


def fetched(url: str, byte_count: int) -> bytes:
    """Return at most `byte_count` + 1 bytes, fetched over TLS; without TLS only from this machine, for emulators."""
    parts, request = urlsplit(url), urllib.request.Request(url)
    if parts.scheme == "http" and (parts.hostname or "").endswith(".localhost"):
        # An emulated bucket's own host, which not every machine resolves: the emulator answers as a proxy.
        request.set_proxy(f"127.0.0.1:{parts.port}", "http")
    elif parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _HERE):
        raise ValueError("weights are fetched over https only")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())
    for attempt in range(_TRIES):
        try:
            with opener.open(request, timeout=_TIMEOUT_S) as answer:
                data: bytes = answer.read(byte_count + 1)
                return data
        except urllib.error.HTTPError as error:
            if error.code < 500 or attempt == _TRIES - 1:
                raise
        except OSError:
            if attempt == _TRIES - 1:
                raise
        time.sleep(0.1 * 2**attempt)
    raise ValueError("not reached")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: object, **options: object) -> None:
        return None


def _checked(data: bytes, ref: BlobRef) -> bytes:
    if len(data) != ref.byte_count or hashlib.sha256(data).hexdigest() != ref.sha256:
        raise MalformedMessage(
            "weights", f"the weights of version {ref.version} did not arrive as they were published"
        )
    return data
