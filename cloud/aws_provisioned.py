"""Instances of a function that are kept ready for one job: bought when it begins, given back when it ends."""

from __future__ import annotations

import threading
from typing import Any


class KeptReady:
    """`qualifier` is the version to call from then on; None until there is one. Without any wanted it does nothing."""

    def __init__(self, client: Any, instances: int) -> None:
        self._client = client
        self._instances = instances
        self._thread: threading.Thread | None = None
        self._bought: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._closed = False
        self.qualifier: str | None = None
        self.failure = ""

    def begin(self, function: str) -> None:
        """Have them, once; returns at once, calls go to ordinary instances until they are there."""
        if self._instances and self._thread is None:
            self._thread = threading.Thread(
                target=self._buy, args=(function,), name="kept-ready", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Give them back. What cannot be given back is said."""
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._closed = True
            for where in self._bought:
                self._client.delete_provisioned_concurrency_config(**where)
            self._bought.clear()

    def _buy(self, function: str) -> None:
        try:
            version = str(self._client.publish_version(FunctionName=function)["Version"])
            where = {"FunctionName": function, "Qualifier": version}
            with self._lock:
                if self._closed:
                    return
                # Written down before it is asked for: a lost reply may have bought them all the same.
                self._bought.append(where)
                self._client.put_provisioned_concurrency_config(
                    **where, ProvisionedConcurrentExecutions=self._instances
                )
            self.qualifier = version
        except Exception as error:
            self.failure = f"no instances are kept ready: {error}"
