"""How many invocations may run at once: the account's quota, and less while AWS throttles."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from cloud.platforms.aws.error_text import refusal

# The quota of a new account, assumed if it cannot be read.
NEW_ACCOUNT = 10
_HALVED_AT_MOST_EVERY_S = 1.0


@dataclass(frozen=True)
class AccountLimits:
    """Functions at once: of the whole account, and of functions without a reserved share."""

    concurrent: int
    unreserved: int
    why_assumed: str = ""
    """Why they could not be read; empty if they were."""

    @staticmethod
    def of(client: Any) -> AccountLimits:
        """Return the account's limits, or those of a new account if they cannot be read."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            limit = client.get_account_settings()["AccountLimit"]
            return AccountLimits(
                int(limit["ConcurrentExecutions"]), int(limit["UnreservedConcurrentExecutions"])
            )
        except (ClientError, BotoCoreError, KeyError) as error:
            why = refusal(error)
            return AccountLimits(NEW_ACCOUNT, NEW_ACCOUNT, f"{why.words} {why.fix}")


class ConcurrencyLimit:
    """At most `most` threads are inside. Each throttling halves that, each success raises it a little.

    Other programs use the same quota, so only throttling shows how much is left.
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
        """Wait for room. Return False if the limit was closed meanwhile."""
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
