"""A site with jobs of all kinds and ends, what their raw rows say of each, and a count of what pages and files say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.factories import evaluated, make_running_job, make_spec, round_finished, stopped
from tests.webapp.settled import lambda_lines, settle
from training.engine.messages import Evaluated, RoundFinished
from training.engine.reports import RoundReport
from training.tasks.supervised import DescentFigures
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Event, Job, Round
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.services import pause_job
from webapp.money.models import Charge

PRESETS = (
    "cartpole",
    "cartpole-a2c",
    "cartpole-impala",
    "cartpole-impact",
    "siren-digits",
    "hopper-simulated",
)
ENDS = ("running", "target", "steps", "failing", "cancelled", "paused", "budget", "waiting")
MAJORITY_LOSS = 2.3
_GOALS = {"CartPole-v1": 475.0}


def make_site(project: Any, user: Any, count: int) -> list[Job]:
    """Jobs of each preset with each end: never evaluated, once, or often; some with rounds that a resume repeated.

    Two in five are seeds of a group, all of them evaluated; one in five are seeds of a group that is not.
    """
    return [_job(project, user, number) for number in range(count)]


def _job(project: Any, user: Any, number: int) -> Job:
    of_group = "Judged" if number % 5 in (0, 1) else "Mixed" if number % 5 == 2 else ""
    preset = "cartpole" if of_group else PRESETS[number % len(PRESETS)]
    end = ENDS[(number * 3 + number // 8) % len(ENDS)]
    evaluations = 1 + number % 3 if of_group == "Judged" else number % 3
    name = f"{of_group}, seed {number}" if of_group else f"{preset} {number}"
    spec = make_spec(preset, name=name, group=of_group, training__seed=number, budget_usd="5")
    job, epoch = make_running_job(project=project, user=user, spec=spec)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3, score=spec.training.score)
    rounds = 0 if end == "waiting" and not of_group else 4 + number % 7
    kind, spent = spec.training.kind, 0
    for round_no in range(1, rounds + 1):
        spent += settle(
            job, epoch, f"n{round_no}", lambda_lines(700_000 + 1_000 * number), at=SYSTEM_CLOCK.now()
        )
        recorder.record(RoundFinished(report=_report(number, round_no, kind, preset, spent)))
        if evaluations and round_no % max(1, rounds // evaluations) == 0:
            recorder.record(_evaluation(number, round_no, kind, preset))
    if number % 7 == 3 and rounds > 4:  # a resume that repeats the last two rounds, and their evaluations
        _repeat(job, recorder, number, rounds, kind, preset, spent)
    if end == "paused":
        pause_job(job=Job.objects.get(pk=job.pk), user=user)
    if end not in ("running", "waiting"):
        recorder.finish(_stopped(job.pk, end))
    return Job.objects.get(pk=job.pk)


def _repeat(
    job: Job, recorder: Recorder, number: int, rounds: int, kind: str, preset: str, spent: int
) -> None:
    from webapp.jobs.events.event_log import EventEntry, append_events

    again = rounds - 2
    Round.objects.filter(job=job, round_no__gt=again).update(round_no=None)
    append_events(
        job.pk, [EventEntry("resumed", {"from_round": again, "checkpoint": ""})], clock=SYSTEM_CLOCK
    )
    for round_no in (again + 1, again + 2):
        recorder.record(RoundFinished(report=_report(number + 1, round_no, kind, preset, spent)))
    recorder.record(_evaluation(number + 1, again + 2, kind, preset))


def _report(number: int, round_no: int, kind: str, preset: str, spent: int) -> RoundReport:
    score = 20.0 + number + 3.5 * round_no
    report: RoundReport = round_finished(round_no, mean=None if round_no == 1 else score, spent=spent).report
    changes: dict[str, Any] = {"total_s": 1.25, "started_s": 1.25 * (round_no - 1)}
    if kind == "supervised":
        loss = 2.5 / (round_no + number)
        changes["figures"] = DescentFigures(loss=loss, pushes=2, pushed_bytes=10, staleness_most=0)
    if preset == "cartpole-impact":  # every second round learns from old data
        changes["total_progress"] = 256 * ((round_no + 1) // 2)
        if round_no % 2 == 0:
            changes |= {"progress": 0, "replayed_samples": 256}
    return report.model_copy(update=changes)


def _evaluation(number: int, round_no: int, kind: str, preset: str) -> Evaluated:
    if kind == "supervised":
        facts = {"training": kind, "accuracy": 0.9, "majority_loss": MAJORITY_LOSS, "rows": 100}
        return Evaluated.model_validate(
            {
                **facts,
                "loss": 2.0 / (round_no + number),
                "round_no": round_no,
                "total_env_steps": 256 * round_no,
                "at_s": 1.25 * round_no,
                "cost_picodollars": 0,
            }
        )
    found: Evaluated = evaluated(
        round_no, mean=1_250.0 if preset == "hopper-simulated" else 330.0 + 40.0 * round_no
    )
    return found


def _stopped(job_id: str, end: str) -> Any:
    truth = truth_of(Job.objects.get(pk=job_id))
    return stopped(end, truth.rounds).model_copy(
        update={
            "progress": truth.steps,
            "platform_s": truth.time_s,
            "evaluated_score": truth.evaluated,
            "training_score": truth.training,
        }
    )


@dataclass(frozen=True)
class Truth:
    """What the raw rows of a job say: its rounds' reports, its events, its charges."""

    training: float | None
    evaluated: float | None
    steps: int
    rounds: int
    time_s: float
    spent: int
    decimals: int
    reached: tuple[int, float, int] | None
    """Round, seconds and picodollars of the first evaluation at the reference of what is learned."""

    @property
    def score(self) -> float | None:
        return self.training if self.evaluated is None else self.evaluated

    @property
    def basis(self) -> str | None:
        if self.evaluated is not None:
            return "evaluation"
        return None if self.training is None else "training"


def truth_of(job: Job) -> Truth:
    reports = [row.report for row in Round.objects.filter(job=job).order_by("round_no")]
    judged: dict[int, float] = {}
    for event in Event.objects.filter(job=job).order_by("seq"):
        if event.kind == "resumed":
            judged = {
                number: mean for number, mean in judged.items() if number <= event.payload["from_round"]
            }
        elif event.kind == "evaluation":
            judged[event.payload["round_no"]] = event.payload["return_mean"]
    shown = [one["episode_return_mean"] for one in reports if one["episode_return_mean"] is not None]
    charges = Charge.objects.filter(account__job=job, state="settled")
    is_loss = job.spec["training"]["kind"] == "supervised"
    goal = MAJORITY_LOSS if is_loss else _GOALS.get(job.subject)
    toward = -1 if is_loss else 1
    first = next((one for one in sorted(judged) if goal and toward * (judged[one] - goal) >= 0), None)
    there = next((one for one in reports if one["round_no"] == first), None)
    ends = [one["started_s"] + one["total_s"] for one in reports]
    return Truth(
        training=shown[-1] if shown else None,
        evaluated=judged[max(judged)] if judged else None,
        steps=sum(one["env_steps"] for one in reports),
        rounds=len(reports),
        time_s=ends[-1] if ends else 0.0,
        spent=sum(one.settled_picodollars or 0 for one in charges),
        decimals=4 if is_loss else 1,
        reached=(first, there["started_s"] + there["total_s"], there["spend"]["spent_picodollars"])
        if there and first
        else None,
    )


@dataclass
class Walk:
    """What was compared, by place and quantity, and what differs."""

    compared: Counter[tuple[str, str]] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def see(self, place: str, quantity: str, what: str, found: Any, expected: Any) -> None:
        self.compared[place, quantity] += 1
        if found != expected:
            self.differences.append(f"{place}, {quantity} of {what}: {found!r}, should be {expected!r}")


def in_score(value: float | None, decimals: int) -> str:
    """A score as people read it."""
    if value is None:
        return "–"
    return f"{value:,.{decimals if abs(value) < 999.95 else 0}f}"


def in_usd(picodollars: int) -> str:
    """Dollars as people read them: two decimals from one dollar on, three significant digits below."""
    usd = Decimal(picodollars) / 10**12
    return f"${usd:,.2f}" if usd >= 1 or not usd else f"${usd:.{max(2, 2 - usd.adjusted())}f}"


def in_seconds(seconds: float) -> str:
    assert seconds < 59
    return f"{seconds:.1f} s"


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
