"""How many invocations may be out at once: what the account allows, less where it says that this is too many."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

# What a new account has. Assumed where the account does not tell.
NEW_ACCOUNT = 10
_HALVED_AT_MOST_EVERY_S = 1.0


@dataclass(frozen=True)
class AccountLimits:
    """Functions at once: of the whole account, and of those functions that have no share of their own."""

    concurrent: int
    unreserved: int
    known: bool = True

    @staticmethod
    def of(client: Any) -> AccountLimits:
        """Read from the account. Where that is not allowed, as few as a new account has."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            limit = client.get_account_settings()["AccountLimit"]
            return AccountLimits(
                int(limit["ConcurrentExecutions"]), int(limit["UnreservedConcurrentExecutions"])
            )
        except (ClientError, BotoCoreError, KeyError):
            return AccountLimits(NEW_ACCOUNT, NEW_ACCOUNT, known=False)


class Gate:
    """At most `most` inside. Each throttling halves that, each success gives a little back.

    Others in the account use the same limit, so what is allowed can only be found out by being told.
    """

    def __init__(self, most: int) -> None:
        self.most = max(1, most)
        self._allowed = float(self.most)
        self._inside = 0
        self._halved_s = -_HALVED_AT_MOST_EVERY_S
        self._changed = threading.Condition()
        self._closed = False

    @property
    def allowed(self) -> int:
        return max(1, int(self._allowed))

    def enter(self) -> bool:
        """Wait for room. False: the gate was closed meanwhile, go home."""
        with self._changed:
            while not self._closed and self._inside >= self.allowed:
                self._changed.wait()
            self._inside += not self._closed
            return not self._closed

    def leave(self, *, throttled: bool) -> None:
        with self._changed:
            self._inside -= 1
            now_s = time.monotonic()
            if throttled:
                if now_s - self._halved_s >= _HALVED_AT_MOST_EVERY_S:
                    self._halved_s = now_s
                    self._allowed = max(1.0, self._allowed / 2)
            else:
                self._allowed = min(float(self.most), self._allowed + 1.0)
            # Success may make room for one more than the one that left.
            self._changed.notify(2)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
