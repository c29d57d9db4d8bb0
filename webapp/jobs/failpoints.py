"""Named places where a test can make a process die or fail, to test recovery. Off in production.

`settings.FAILPOINTS` names them, as in "after_checkpoint_file:exit" or "after_round:raise@3" (the third
time).
"""

import os
import signal
import time
from collections import Counter

from django.conf import settings

_OF_HOLDINGS = ("after_intent", "before_made", "after_made", "after_ending", "before_gone", "after_gone")
NAMES = frozenset(
    {
        *_OF_HOLDINGS,
        "before_open",
        "after_checkpoint_file",
        "after_round",
        "after_reserve",
        "after_alert_sent",
    }
)
_hits: Counter[str] = Counter()


class FailpointReached(Exception):
    """Raised by a failpoint with the action "raise"."""


def reach(name: str) -> None:
    """Do what the settings configure for `name`; usually nothing."""
    configured = settings.FAILPOINTS
    if not configured:
        return
    if name not in NAMES:
        raise ValueError(f"{name} is not a failpoint")
    for entry in configured.split(","):
        wanted, _, rest = entry.strip().partition(":")
        action, _, at = rest.partition("@")
        if wanted == name:
            _hits[name] += 1
            if not at or _hits[name] == int(at):
                _act(name, action)


def _act(name: str, action: str) -> None:
    if action == "exit":
        os._exit(86)
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "hang":  # as a long call: the process reacts to nothing meanwhile
        time.sleep(3600)
    if action == "raise":
        raise FailpointReached(f"failpoint {name}")
    raise ValueError(f"failpoint {name} has no action {action!r}; it can exit, kill, hang or raise")
