"""What a shared page may contain: lists of what is let through, never of what is held back.

No reason and no event's text is among it, because those name people, connections and budgets. Money is let through
only by links that were made with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from webapp.jobs.charts.figures import LINES, WALL
from webapp.jobs.models import EventKind

HEADER = frozenset(
    {
        *("name", "observed", "reason_code", "simulated", "emulated", "since", "started_at", "finished_at"),
        *("round_no", "total_progress", "actors", "training_score", "evaluated_score", "platform_s"),
        *("judged", "progress"),
    }
)
"""Of a job's header (webapp/jobs/queries.py)."""
HEADER_MONEY = frozenset(
    {"spent_usd", "reserved_usd", "limit_usd", "free_usd", "cap_usd", "calls_in_flight", "reached"}
)
FIGURES = frozenset(
    {
        *("round", "steps", "platform_s", WALL, *(name for name, line in LINES.items() if not line.money)),
        *("startup_s", "rollout_s", "fetch_s", "compute_s", "push_s", "transfer_s"),
        *("update_s", "detector_s", "idle_s"),
        *("failed_calls", "cold_starts"),
    }
)
"""Of a round's figures (webapp/jobs/charts/figures.py)."""
FIGURES_MONEY = frozenset({"spent_usd", "cost_usd", *(name for name, line in LINES.items() if line.money)})
_MARKS = frozenset({"checkpoint", "call_failed", "resumed", "bounds"})
_MARKS_MONEY = frozenset({"budget"})
_PAYLOADS: dict[str, frozenset[str]] = {
    EventKind.EVALUATION: frozenset({"round_no", "total_env_steps", "return_mean"}),
    EventKind.CHECKPOINT: frozenset({"round_no"}),
    EventKind.RESUMED: frozenset({"from_round"}),
    EventKind.NOTE: frozenset({"actors_least"}),
}
"""Of events, what charts draw. Other kinds of events have nothing to show but that they were."""
FILM = frozenset({"round", "return", "steps", "ended", "film", "still"})
"""Of a film (webapp/jobs/policies/policy_views.py)."""
SPEC_FIELDS = (
    *("training.algorithm.", "training.network.", "training.model.", "training.optimiser.", "training.loop."),
    *("training.scaling.", "training.stop.", "training.rollout.", "training.evaluation."),
    *("training.environment.id", "training.kind", "platform.kind", "platform.profile"),
)
"""How the paths of a spec's fields begin that a comparison may show."""
SPEC_MONEY = ("budget_usd",)
LONGEST_VALUE = 60
"""Longer values of a spec are no settings: weights, addresses, documents."""
REPORT_BY = ("day", "month", "job", "cloud", "service", "tag")
"""What costs may be shared by. Not by user, which would name people's addresses, nor call by call."""
REPORT_FILTERS = ("job", "cloud", "service", "tag")


def job_message(message: Mapping[str, Any], *, money: bool) -> dict[str, Any]:
    """A message of a job's live page, reduced to what a shared page may show."""
    kind = message["t"]
    kept: dict[str, Any] = {"t": kind}
    for name in ("seq", "first", "last", "at"):
        if name in message:
            kept[name] = message[name]
    if "job" in message:
        kept["job"] = job_header(message["job"], money=money)
    if "series" in message:
        kept["series"] = job_series(message["series"], money=money)
    if "events" in message:
        kept["events"] = [_event(event, money) for event in message["events"]]
    return kept


def job_header(header: Mapping[str, Any], *, money: bool) -> dict[str, Any]:
    return _only(header, HEADER | HEADER_MONEY if money else HEADER)


def job_series(series: Mapping[str, Any], *, money: bool) -> dict[str, Any]:
    """A job's rounds as columns, without those that are not shared."""
    names = _figures(money)
    marks = _MARKS | _MARKS_MONEY if money else _MARKS
    return {
        "per_point": series["per_point"],
        "rounds": series["rounds"],
        **{group: [name for name in series[group] if name in names] for group in ("lines", "parts")},
        **{group: _only(series[group], names) for group in ("columns", "low", "high")},
        "evaluations": _only(series["evaluations"], {"round", "steps", "mean"}),
        "marks": _only(series["marks"], marks),
    }


def shared_film(film: Mapping[str, Any]) -> dict[str, Any]:
    return _only(film, FILM)


def may_show_field(path: str, *, money: bool) -> bool:
    """Whether a comparison may show this field of the specs."""
    return path.startswith(SPEC_FIELDS) or (money and path in SPEC_MONEY)


def _event(event: Mapping[str, Any], money: bool) -> dict[str, Any]:
    kind = event["kind"]
    kept = {"seq": event["seq"], "kind": kind}
    if kind == EventKind.ROUND:
        return {**kept, "point": _only(event["point"], _figures(money))}
    if kind == EventKind.BUDGET and not money:
        return {**kept, "kind": EventKind.NOTE.value, "payload": {}}
    return {**kept, "payload": _only(event.get("payload", {}), _PAYLOADS.get(kind, frozenset()))}


def _figures(money: bool) -> frozenset[str]:
    return FIGURES | FIGURES_MONEY if money else FIGURES


def _only(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}
