"""Attaches this process to a Ray cluster as a driver, and explains why that failed."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cloud.actor.body import ActorMemory
from cloud.platforms.ray.head import NoRay

RAY_VERSION = "2.60.0"
_WORDS_SHOWN = 400


def installed() -> bool:
    """Return True if Ray is installed, without importing it."""
    return importlib.util.find_spec("ray") is not None


def require() -> None:
    """Raise NoRay if the library is missing or has another version."""
    if not installed():
        raise NoRay("Ray is not installed. It is an extra: run `make ray-setup`, then start the job again.")
    version = importlib.metadata.version("ray")
    if version != RAY_VERSION:
        raise NoRay(f"Ray {version} is installed; this was made for {RAY_VERSION}: run `make ray-setup`.")


def attached(address: str, namespace: str) -> Any:
    """Attach this process to the cluster at `address`. Return the library. Raises NoRay."""
    if (Path.home() / ".ray" / "auth_token").exists():
        # A driver sends the token only if this is set before the library is imported.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    with _own_signals():
        # Without types, because Ray may not be installed.
        ray: Any = importlib.import_module("ray")
        if ray.is_initialized():
            raise NoRay("This process is attached to a Ray cluster already.")
        try:
            ray.init(
                address=address,
                namespace=namespace,
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
            )
        except Exception as error:
            ray.shutdown()
            raise NoRay(_why_not(address, str(error))) from None
    return ray


class RayActor:
    """The actor on a node: the same body as on every cloud. Calls and answers are our own bytes."""

    def __init__(self, cores: int = 1) -> None:
        self._actor = ActorMemory(cores=cores)

    def ready(self) -> None:
        """Answer as soon as the process has started."""

    def answer(self, request: bytes, weights: bytes | None) -> bytes:
        return self._actor.answer(request, weights=weights)


def _why_not(address: str, error: str) -> str:
    if "ersion mismatch" in error:
        return (
            f"The cluster at {address} runs another version of Ray or Python. Both sides need Ray {RAY_VERSION} and"
            f" the same Python: {error[:_WORDS_SHOWN]}"
        )
    if "auth" in error.lower() and "token" in error.lower():
        return (
            f"The cluster at {address} did not accept this machine's token. Put the cluster's token into"
            " ~/.ray/auth_token of the user that runs the jobs."
        )
    return (
        f"No Ray cluster answers at {address}. The job must run on one of the cluster's machines, and the address must"
        f" be that of its head, like 10.0.0.5:6379: {error[:_WORDS_SHOWN]}"
    )


@contextmanager
def _own_signals() -> Iterator[None]:
    """Restore the signal handlers that Ray replaces: SIGTERM makes a job here hand over."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
