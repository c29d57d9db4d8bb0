"""What a stored run costs, up to any of its rounds, on any cloud and stack: endpoints of time and money.

Evaluations judge a policy and belong to no training, so they are taken out before a run is timed and priced. Costs of a
part of a run are those of a run that ends there: rented machines are paid until then and no longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from cloud.money.billing.paper_formulas import FORMULAS, FormulaRound
from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import CompletedCall, RetimedRun, retime
from cloud.money.billing.wave_replay import WaveTimes, replay_waves
from cloud.money.billing.waves import WaveRun
from cloud.money.billing.work import CallRecord
from cloud.money.billing.work_file import RunSegment
from cloud.timing.numbers.ranges import Replays
from cloud.timing.virtual_time import NS
from research.claims import Meter
from research.pricing_targets import PRICING_TARGETS, Account, place_of
from research.reports.outcomes import RunOutcome
from training.calls import KINDS
from training.engine.ports import Settlement
from training.statistics.few_seeds import Reached, time_to_threshold
from webapp.money.amounts import PICODOLLARS_PER_USD

CLOUD_SEEDS = (0, 1, 2)
CLOUD_SEED = CLOUD_SEEDS[0]
ROUNDS_HELD = 3
_CURVE_POINTS = 8
_OF_ROLLOUTS = ("rollout", "actors", "workers", "provisioned")
_SMOOTHED = 5


@dataclass(frozen=True)
class RunCost:
    """Of a run until the end of one of its rounds. `paper_usd` is by the formula of the pricing target's paper."""

    usd: float
    seconds: float
    paper_usd: float
    rollouts_share: float


class PricedRun:
    """A complete run with the record of its work."""

    def __init__(self, outcome: RunOutcome, read_work: Callable[[], list[RunSegment]]) -> None:
        self.outcome = outcome
        self._read_work = read_work
        self._costs: dict[tuple[str, int, Account], RunCost] = {}
        self._schedules: dict[int, list[ReplaySchedule]] = {}
        self._replays: dict[int, Replays] = {}
        # Of the last place only: a run's costs there are asked for one after the other.
        self._wave_times: tuple[tuple[str, Account], list[WaveTimes | None]] | None = None

    @cached_property
    def _segments(self) -> list[RunSegment]:
        return [_without_evaluations(segment) for segment in self._read_work()]

    @cached_property
    def memory_mb(self) -> int:
        return self.schedules(self.rounds)[0].memory_mb

    @cached_property
    def rounds(self) -> int:
        return max(work.round_no for segment in self._segments for work in segment.works)

    def schedules(self, until: int) -> list[ReplaySchedule]:
        """The run until that round, to be played on a cloud."""
        if until not in self._schedules:
            self._schedules[until] = [ReplaySchedule.of(_until(segment, until)) for segment in self._segments]
        return self._schedules[until]

    def replays(self, until: int) -> Replays:
        """The same, to be played on many clouds at once."""
        if until not in self._replays:
            self._replays[until] = Replays(self.schedules(until))
        return self._replays[until]

    @cached_property
    def _waves(self) -> list[WaveRun | None]:
        """The segments that go by waves, each version after the actors that sampled for it."""
        found = [WaveRun.of(schedule) for schedule in self.schedules(self.rounds)]
        return [waves if waves is not None and _is_round_by_round(waves) else None for waves in found]

    def reached(
        self,
        target: float,
        meter: Meter = "evaluation",
        *,
        begin: bool = False,
        every_steps: int | None = None,
    ) -> Reached:
        """The round by which the target had been held for three readings, or the first of these with `begin`; or the
        last round. Readings are those of rounds, or of stretches of so many environment steps.
        """
        rounds, means = (
            self.outcome.metered(meter)
            if every_steps is None
            else self.outcome.metered_every(meter, every_steps)
        )
        moment = time_to_threshold(rounds, means, target, ROUNDS_HELD, begin=begin)
        return moment if moment.observed else Reached(float(self.rounds), False)

    def cost(self, pricing_target: str, until: int, account: Account = "full") -> RunCost:
        """The mean over several seeds of the cloud, so that no verdict hangs on one draw of delays."""
        key = pricing_target, until, account
        if key not in self._costs:
            formula = PRICING_TARGETS[pricing_target].formula
            book = place_of(pricing_target, account).book
            segments = [
                _cost(self._played(pricing_target, until, account, lane), formula, book)
                for lane in range(len(CLOUD_SEEDS))
            ]
            self._costs[key] = RunCost(
                *(float(np.mean(column)) for column in zip(*map(astuple, segments), strict=True))
            )
        return self._costs[key]

    def _played(self, pricing_target: str, until: int, account: Account, lane: int) -> list[_Played]:
        """Each segment until that round, on one of the seeds of the cloud."""
        place, memory_mb, key = place_of(pricing_target, account), self.memory_mb, (pricing_target, account)
        if self._wave_times is None or self._wave_times[0] != key:
            places = [place] * len(CLOUD_SEEDS)
            all_times = [
                None if waves is None else replay_waves(waves, places, CLOUD_SEEDS) for waves in self._waves
            ]
            self._wave_times = key, all_times
        played = []
        for number, times in enumerate(self._wave_times[1]):
            if times is None or times.left_out[lane]:
                run = retime(self.schedules(until)[number], place, seed=CLOUD_SEEDS[lane])
                played.append(_played_by_events(run, memory_mb))
            else:
                played.append(_played_by_waves(times, lane, until, memory_mb))
        return played

    def dollars_curve(
        self, pricing_target: str, meter: Meter = "evaluation", account: Account = "full"
    ) -> tuple[list[float], list[float]]:
        """What had been spent by the end of each metered round, and the mean of the last few readings."""
        rounds, means = self.outcome.metered(meter)
        nodes = sorted({round(one) for one in np.linspace(1, self.rounds, _CURVE_POINTS)})
        spent = [self.cost(pricing_target, node, account).usd for node in nodes]
        smooth = [float(np.mean(means[max(0, n + 1 - _SMOOTHED) : n + 1])) for n in range(len(means))]
        return [float(usd) for usd in np.interp(rounds, nodes, spent)], smooth


def return_at(curve: tuple[Sequence[float], Sequence[float]], usd: float) -> float:
    """The return of the policy that so much money had bought: that of the last reading it paid for."""
    paid = [score for spent, score in zip(*curve, strict=True) if spent <= usd * (1 + 1e-9)]
    return paid[-1] if paid else curve[1][0]


@dataclass(frozen=True)
class _Played:
    """A run segment on a cloud. `rollouts_picodollars`: what sampling costs of it; `rounds`: as the papers see them."""

    time_s: float
    picodollars: int
    rollouts_picodollars: int
    rounds: list[FormulaRound]


def _cost(played: Sequence[_Played], formula: str, book: PriceBook) -> RunCost:
    picodollars = sum(replayed.picodollars for replayed in played)
    rollouts = sum(replayed.rollouts_picodollars for replayed in played)
    rounds = [times for replayed in played for times in replayed.rounds]
    return RunCost(
        usd=picodollars / PICODOLLARS_PER_USD,
        seconds=sum(replayed.time_s for replayed in played),
        paper_usd=FORMULAS[formula].cost(rounds, book) / PICODOLLARS_PER_USD,
        rollouts_share=rollouts / picodollars if picodollars else 0.0,
    )


def _played_by_events(run: RetimedRun, memory_mb: int) -> _Played:
    rollouts = sum(line.picodollars for line in run.bill.lines if line.category in _OF_ROLLOUTS)
    return _Played(run.time_s, run.bill.picodollars, rollouts, _as_papers_see(run, memory_mb))


def _played_by_waves(times: WaveTimes, lane: int, until: int, memory_mb: int) -> _Played:
    waves = [wave for wave in times.run.waves if wave.round_no <= until]
    if not waves:
        return _Played(0.0, 0, 0, [])
    by_category = times.rents(lane, len(waves))
    for number, wave in enumerate(waves):
        amount = int(times.picodollars[lane, number])
        by_category[wave.kind] = by_category.get(wave.kind, 0) + amount
    return _Played(
        int(times.landed_ns[lane, len(waves) - 1]) / NS,
        sum(by_category.values()),
        sum(amount for category, amount in by_category.items() if category in _OF_ROLLOUTS),
        _rounds_of_waves(times, lane, memory_mb)[: sum(KINDS[wave.kind].makes_version for wave in waves)],
    )


def _is_round_by_round(run: WaveRun) -> bool:
    """Whether each version comes right after the actors of its round: a resumed segment may begin with the learner."""
    return all(
        before is not None and (before.where, before.round_no) == ("actor", wave.round_no)
        for before, wave in pairwise([None, *run.waves])
        if wave is not None and KINDS[wave.kind].makes_version
    )


@lru_cache(maxsize=64)
def _rounds_of_waves(times: WaveTimes, lane: int, memory_mb: int) -> list[FormulaRound]:
    """Each update with the actors before it, as the papers see them."""
    rounds: list[FormulaRound] = []
    for number, wave in enumerate(times.run.waves):
        if not KINDS[wave.kind].makes_version:
            continue
        sent_ns, landed_ns = int(times.sent_ns[lane, number - 1]), int(times.landed_ns[lane, number])
        total_s, boot_s = landed_ns / NS - sent_ns / NS, 0.0
        if not rounds:
            boot_s = sum(int(times.startup_ns[lane, one]) / NS for one in (number - 1, number))
        rounds.append(
            FormulaRound(
                round_s=max(0.0, total_s - boot_s),
                update_s=int(times.run_ns[number][lane, 0]) / NS,
                sampling_s=tuple(ns / NS for ns in times.run_ns[number - 1][lane].tolist()),
                memory_mb=memory_mb,
            )
        )
    return rounds


def _as_papers_see(run: RetimedRun, memory_mb: int) -> list[FormulaRound]:
    """Rounds with the durations of their calls; the papers' clocks begin when everything has started."""
    by_round: dict[int, list[CompletedCall]] = defaultdict(list)
    for call in run.done:
        by_round[call.round_no].append(call)
    seen = []
    for place, times in enumerate(run.rounds):
        done = by_round[times.round_no]
        boot_s = 0.0
        if place == 0:
            # Of the first to land: in an asynchronous loop others of this round come when everything has started.
            boot_s = sum(
                next((call.startup_s for call in done if KINDS[call.kind].role == role), 0.0)
                for role in ("sampling", "learning")
            )
        seen.append(
            FormulaRound(
                round_s=max(0.0, times.total_s - boot_s),
                update_s=sum(call.run_s for call in done if KINDS[call.kind].role == "learning"),
                sampling_s=tuple(call.run_s for call in done if KINDS[call.kind].role == "sampling"),
                memory_mb=memory_mb,
            )
        )
    return seen


def _without_evaluations(segment: RunSegment) -> RunSegment:
    """Who waited for an evaluation waits for what that had waited for."""
    waited = {work.name: work.after for work in segment.works if work.kind == "evaluate"}

    def before(names: tuple[str, ...]) -> tuple[str, ...]:
        found: list[str] = []
        for name in names:
            found += before(waited[name]) if name in waited else [name]
        return tuple(dict.fromkeys(found))

    works = [replace(work, after=before(work.after)) for work in segment.works if work.kind != "evaluate"]
    return _with_works(segment, works)


def _until(segment: RunSegment, round_no: int) -> RunSegment:
    return _with_works(segment, [work for work in segment.works if work.round_no <= round_no])


def _with_works(segment: RunSegment, works: list[CallRecord]) -> RunSegment:
    ids = {work.id for work in works}
    calls = [settlement for settlement in segment.settlements if _work_id(settlement) in ids]
    return RunSegment(segment.spec, calls, works)


def _work_id(settlement: Settlement) -> str | None:
    record = settlement.usage.get("work")
    return record.get("id") if isinstance(record, dict) else None
