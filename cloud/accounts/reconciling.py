"""Compares the register with the resources found in an account: one decision for each, with its reason.

Pure. The account must be listed before the register is read: then any of our resources that was listed is registered,
because an intent is written down before its request goes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from cloud.accounts.register import FoundResource, Kind, State

CREATOR_GONE = "The process that created it is gone."
ENDED_BY_ITSELF = "It ended by itself, as its run did."

Action = Literal[
    "leave",  # correct as it is
    "wait",  # too early to decide
    "stands",  # it exists: the create succeeded, though it was not confirmed
    "end",  # it bills without an owner: request its removal
    "gone",  # it was to end and is gone, or it was never created
    "lost",  # it should exist and does not
]


@dataclass(frozen=True)
class RegisteredResource:
    """A row of the register. `held`: the process that created it still has its run."""

    name: str
    kind: Kind
    state: State
    held: bool
    intended_unix_s: float
    since_unix_s: float
    expires_unix_s: float
    missing_since_unix_s: float | None = None


@dataclass(frozen=True)
class ReconcilingPatience:
    """How far a cloud's listing may lag behind, and when to repeat a request for removal."""

    appears_within_s: float = 60.0
    disappears_within_s: float = 15.0
    ask_again_after_s: float = 10.0


@dataclass(frozen=True)
class Decision:
    name: str
    action: Action
    reason: str
    registered: RegisteredResource | None = None
    found: FoundResource | None = None

    @property
    def orphaned(self) -> bool:
        """Whether the process that created it is no longer there to end it."""
        return self.action == "end" and (
            self.registered is None or self.registered.state in ("intended", "standing")
        )


PATIENCE = ReconcilingPatience()


def compare(
    registered: Iterable[RegisteredResource],
    found: Sequence[FoundResource],
    *,
    now_unix_s: float,
    ours: str,
    patience: ReconcilingPatience = PATIENCE,
) -> list[Decision]:
    """Return a decision for everything registered or found, in the order of names. `ours`: this deployment."""
    there = {held.name: held for held in found}
    known = {entry.name: entry for entry in registered}
    decisions = []
    for name in sorted(there.keys() | known.keys()):
        resource, seen = known.get(name), there.get(name)
        if resource is None:
            assert seen is not None
            action, reason = _stranger(seen, now_unix_s, ours)
        elif seen is None:
            action, reason = _unseen(resource, now_unix_s, patience)
        else:
            action, reason = _seen(resource, now_unix_s, patience)
        decisions.append(Decision(name, action, reason, resource, seen))
    return decisions


def _stranger(seen: FoundResource, now_unix_s: float, ours: str) -> tuple[Action, str]:
    """Decide about a resource that exists, but not in this installation's register. Only what a run creates has a row:
    what a set-up tries belongs to no run, and is ended by the set-up itself.
    """
    if not seen.deployment:
        return "leave", "Its tags do not say whose it is, so it is left alone."
    if seen.deployment != ours:
        return "leave", f"It belongs to another connection or installation ({seen.deployment})."
    if not seen.run and seen.expires_unix_s is not None and now_unix_s < seen.expires_unix_s:
        return "wait", "A set-up is trying it, and will end it."
    return "end", "It has this installation's tags but no row, so it has no owner to end it."


def _seen(
    resource: RegisteredResource, now_unix_s: float, patience: ReconcilingPatience
) -> tuple[Action, str]:
    since_s = now_unix_s - resource.since_unix_s
    match resource.state:
        case "intended" | "standing":
            if not resource.held:
                return "end", CREATOR_GONE
            if now_unix_s >= resource.expires_unix_s:
                late_s = now_unix_s - resource.expires_unix_s
                return "end", f"It was paid for until {late_s:.0f} s ago, and that was not renewed."
            if resource.state == "intended":
                return "stands", "It exists, though its creation was not confirmed yet."
            return "leave", "It exists and is in use."
        case "ending":
            if since_s < patience.ask_again_after_s:
                return "wait", f"Its removal was requested {since_s:.0f} s ago."
            return "end", f"Its removal was requested {since_s:.0f} s ago, and it still exists."
        case _:
            if since_s < patience.disappears_within_s:
                return "wait", "It has ended; the cloud may still list it for a moment."
            return "end", "It was recorded as gone, but it still exists."


def _unseen(
    resource: RegisteredResource, now_unix_s: float, patience: ReconcilingPatience
) -> tuple[Action, str]:
    """Decide about a resource that was not found: only if one of its age must be listed, and only after a while."""
    age_s = now_unix_s - resource.intended_unix_s
    missing_s = 0.0 if resource.missing_since_unix_s is None else now_unix_s - resource.missing_since_unix_s
    absent = missing_s >= patience.disappears_within_s and age_s >= patience.appears_within_s
    match resource.state:
        case "intended":
            if not absent:
                return "wait", f"It was requested {age_s:.0f} s ago and may not be listed yet."
            if resource.held:
                return "wait", "It is not listed; the process that requested it is still creating it."
            return "gone", f"It was requested {age_s:.0f} s ago and was never created."
        case "standing":
            if not absent:
                return "wait", f"It has not been listed for {missing_s:.0f} s; listings lag behind."
            if not resource.held:
                return "gone", ENDED_BY_ITSELF
            return "lost", f"It should exist but has not been listed for {missing_s:.0f} s."
        case "ending":
            if not absent:
                return "wait", "It is not listed any more; the next listing will confirm that."
            return "gone", "It has ended."
        case _:
            return "leave", "It has ended and is not listed."
