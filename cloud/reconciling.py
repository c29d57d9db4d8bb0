"""What is believed to stand against what is found: one decision for each thing, with its reason in words.

Pure. The account must have been looked at before the beliefs were read: then whatever is found was believed in, if it
is ours, because an intent is written down before its request goes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cloud.register import Found, Kind, State

Deed = Literal[
    "leave",  # as it should be
    "wait",  # too early to say
    "stands",  # it is there: the create succeeded, whoever heard of it
    "end",  # it bills for nobody: ask for it to be taken away
    "gone",  # it was to end and is not there any more, or it never came to be
    "lost",  # it should be there and is not
]


@dataclass(frozen=True)
class Believed:
    """A row of the register. `held`: the process that wanted it still has its run."""

    name: str
    kind: Kind
    state: State
    held: bool
    intended_unix_s: float
    since_unix_s: float
    expires_unix_s: float
    missing_since_unix_s: float | None = None


@dataclass(frozen=True)
class Patience:
    """How far a cloud's listing may lag behind, and how long after a request for an end the next one is made."""

    appears_within_s: float = 60.0
    disappears_within_s: float = 15.0
    ask_again_after_s: float = 10.0


@dataclass(frozen=True)
class Decision:
    name: str
    deed: Deed
    reason: str
    believed: Believed | None = None
    found: Found | None = None

    @property
    def orphaned(self) -> bool:
        """Nobody who wanted it is there to end it."""
        return self.deed == "end" and (
            self.believed is None or self.believed.state in ("intended", "standing")
        )


PATIENCE = Patience()


def compare(
    believed: Iterable[Believed],
    found: Sequence[Found],
    *,
    now_unix_s: float,
    ours: str,
    patience: Patience = PATIENCE,
) -> list[Decision]:
    """A decision for everything believed or found, in the order of the names. `ours`: the deployment that asks."""
    there = {one.name: one for one in found}
    known = {one.name: one for one in believed}
    decisions = []
    for name in sorted(there.keys() | known.keys()):
        belief, seen = known.get(name), there.get(name)
        if belief is None:
            assert seen is not None
            deed, reason = _stranger(seen, ours)
        elif seen is None:
            deed, reason = _unseen(belief, now_unix_s, patience)
        else:
            deed, reason = _seen(belief, now_unix_s, patience)
        decisions.append(Decision(name, deed, reason, belief, seen))
    return decisions


def _stranger(seen: Found, ours: str) -> tuple[Deed, str]:
    """It stands, and this installation's rows do not know it."""
    if not seen.deployment:
        return "leave", "Its tags do not say whose it is, so it is left alone."
    if seen.deployment != ours:
        return "leave", f"It belongs to another connection or installation ({seen.deployment})."
    return "end", "It wears our tags and no row knows it, so nobody is there to end it."


def _seen(belief: Believed, now_unix_s: float, patience: Patience) -> tuple[Deed, str]:
    since_s = now_unix_s - belief.since_unix_s
    match belief.state:
        case "intended" | "standing":
            if not belief.held:
                return "end", "The process that wanted it is gone."
            if now_unix_s >= belief.expires_unix_s:
                late_s = now_unix_s - belief.expires_unix_s
                return "end", f"It was paid for until {late_s:.0f} s ago, and nobody renewed that."
            if belief.state == "intended":
                return "stands", "It is there, though nobody has said so yet."
            return "leave", "It is there and wanted."
        case "ending":
            if since_s < patience.ask_again_after_s:
                return "wait", f"Its end was asked for {since_s:.0f} s ago."
            return "end", f"Its end was asked for {since_s:.0f} s ago, and it is still there."
        case _:
            if since_s < patience.disappears_within_s:
                return "wait", "It is over; the cloud may go on showing it for a moment."
            return "end", "It was thought to be gone, and it is still there."


def _unseen(belief: Believed, now_unix_s: float, patience: Patience) -> tuple[Deed, str]:
    """Absence says something only once a thing of its age must show, and has been absent for a while."""
    age_s = now_unix_s - belief.intended_unix_s
    missing_s = 0.0 if belief.missing_since_unix_s is None else now_unix_s - belief.missing_since_unix_s
    absent = missing_s >= patience.disappears_within_s and age_s >= patience.appears_within_s
    match belief.state:
        case "intended":
            if not absent:
                return "wait", f"It was asked for {age_s:.0f} s ago and may not show yet."
            if belief.held:
                return "wait", "It does not show; the process that wanted it is still at it."
            return "gone", f"It was asked for {age_s:.0f} s ago and never came to be."
        case "standing":
            if not absent:
                return "wait", f"It has not been seen for {missing_s:.0f} s; listings lag behind."
            if not belief.held:
                return "gone", "It ended by itself, as its run did."
            return "lost", f"It should be there and has not been seen for {missing_s:.0f} s."
        case "ending":
            if not absent:
                return "wait", "It does not show any more; one more look makes sure."
            return "gone", "It has ended."
        case _:
            return "leave", "It is over and not there."
