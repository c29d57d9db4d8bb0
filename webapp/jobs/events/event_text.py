"""Each event of a job as text with icon and tone, for pages, live messages and the log of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from training.calls import KINDS
from training.loops.aggregation import AGE_LIMIT
from training.tasks.kinds import declaration_of, score_of
from training.tasks.score import Declaration
from webapp.formatting import (
    Tone,
    display_usd,
    format_file_size,
    format_score,
    format_short_duration,
    plural,
)
from webapp.jobs.models import EventKind
from webapp.jobs.reasons import look_of, look_of_end

Payload = Mapping[str, Any]


class EventText(NamedTuple):
    """An event's text. `tone` is empty if the event is ordinary."""

    text: str
    icon: str = "dot"
    tone: Tone = ""


EVENT_ICONS = (
    "dot",
    "check-circle",
    "exclamation-triangle-fill",
    "x-octagon-fill",
    "sign-stop-fill",
    "bookmark-check",
    "bar-chart",
    "arrow-repeat",
    "arrow-right-circle",
)
"""The icons in the event list of a job page (static/js/jobs/events.js)."""


def describe_event(kind: str, payload: Payload, declared: Declaration | None = None) -> EventText:
    """Return the text of one event, in the words that its kind of training declares."""
    declared = declared or declaration_of(None)
    if kind == EventKind.STOPPED:
        return _stopped(payload, declared)
    text = _WORDS.get(kind, _note)(payload)
    return text._replace(text=declared.say(text.text))


def _note(payload: Payload) -> EventText:
    return EventText(str(payload.get("text", "")))


def _state(payload: Payload) -> EventText:
    look = look_of(str(payload.get("observed")), str(payload.get("reason_code")))
    return EventText(sentence(payload.get("text")), look.event_icon or "arrow-right-circle", look.event_tone)


def _started(payload: Payload) -> EventText:
    round_no = payload.get("resumed_from_round")
    first = f"Resumed from the checkpoint of {{round}} {round_no:,}." if round_no else "Training started."
    sentences = [first, payload.get("stepping", ""), *payload.get("notes", ())]
    return EventText(" ".join(filter(None, sentences)), "arrow-right-circle")


def _round(payload: Payload) -> EventText:
    report = payload["report"]
    took, cost = format_short_duration(report["total_s"]), display_usd(report["cost_picodollars"])
    score = score_of(report)
    reached = f"{score.name} {format_score(report['episode_return_mean'], score.decimals)}"
    text = (
        f"{{Round}} {report['round_no']:,}: {reached}, {plural(report['actors'], '{actor}')}, {took}, {cost}."
    )
    return EventText(" ".join(filter(None, [text, gradients_sentence(report.get("gradients"))])))


def gradients_sentence(gradients: Mapping[str, Any] | None) -> str:
    """Return what a round's gradients became and how far behind they were; empty without any."""
    if not gradients:
        return ""
    bound = "" if gradients["bound"] is None else f", bound {gradients['bound']:.1f}"
    made = f"{plural(gradients['gradients'], 'gradient')} in {plural(gradients['steps'], 'step')}"
    text = f"{made}, {gradients['staleness_mean']:.1f} versions behind on average{bound}."
    if gradients["dropped"]:
        dropped = ", ".join(
            f"{count:,} dropped ({_why_dropped(reason)})"
            for reason, count in sorted(gradients["dropped"].items())
        )
        text += f" {dropped}, {display_usd(gradients['wasted_picodollars'])} wasted."
    return text


_DROPPED = {
    "too_old": f"over {AGE_LIMIT} versions old",
    "numbers": "not finite",
    "duplicate": "answered twice",
    "unknown_version": "of a version that was not requested",
    "refused_version": "of another version",
    "refused_run": "of another run",
    "refused_call": "of another call",
}


def _why_dropped(reason: str) -> str:
    return _DROPPED.get(reason) or ("not as requested" if reason.startswith("refused_") else reason)


def _evaluation(payload: Payload) -> EventText:
    text = format_score(payload["return_mean"])
    if "episode_returns" in payload:
        trials = plural(len(payload["episode_returns"]), "episode")
        text = f"{text} ± {format_score(payload['return_std'])} over {trials}"
    else:
        score = score_of(payload)
        text = f"{score.name} {format_score(payload['return_mean'], score.decimals)}"
    return EventText(f"Evaluated after {{round}} {payload['round_no']:,}: {text}.", "bar-chart", "running")


def _checkpoint(payload: Payload) -> EventText:
    which = "Best checkpoint so far" if payload.get("best") else "Checkpoint"
    size = format_file_size(payload["byte_count"])
    text = f"{which} of {{round}} {payload['round_no']:,} saved, {size}."
    if left_out := payload.get("left_out"):
        text += (
            " More data waits than a checkpoint holds: resumed from it, the job samples"
            f" {plural(left_out, 'trajectory', 'trajectories')} again."
        )
    return EventText(text, "bookmark-check")


def _call_failed(payload: Payload) -> EventText:
    kind = KINDS.get(payload["call_kind"])
    what = kind.subject if kind is not None else f"A call ({payload['call_kind']})"
    again = "It is retried." if payload["will_retry"] else "It is not retried."
    text = f"{what} of {{round}} {payload['round_no']:,} failed: {sentence(payload['reason'])} {again}"
    return EventText(text, "exclamation-triangle-fill", "warning")


def _resumed(payload: Payload) -> EventText:
    return EventText(str(payload.get("text") or "Went on."), "arrow-repeat", "warning")


def _budget(payload: Payload) -> EventText:
    return EventText(str(payload.get("text", "")), "sign-stop-fill", "budget")


def _stopped(payload: Payload, declared: Declaration) -> EventText:
    rounds = plural(payload["rounds"], declared.round_name)
    text = f"{sentence(payload['reason'])} {rounds}, {payload['env_steps']:,} {declared.progress_unit}."
    look = look_of_end(payload["reason_code"])
    return EventText(text, look.event_icon or "check-circle", look.event_tone)


_WORDS: dict[str, Callable[[Payload], EventText]] = {
    EventKind.STATE: _state,
    EventKind.STARTED: _started,
    EventKind.ROUND: _round,
    EventKind.EVALUATION: _evaluation,
    EventKind.CHECKPOINT: _checkpoint,
    EventKind.CALL_FAILED: _call_failed,
    EventKind.RESUMED: _resumed,
    EventKind.BUDGET: _budget,
}


def sentence(text: Any) -> str:
    """Return the text with a capital letter and a full stop."""
    whole = str(text or "").strip()
    if not whole:
        return ""
    return whole[0].upper() + whole[1:] + ("" if whole.endswith((".", "!", "?")) else ".")
