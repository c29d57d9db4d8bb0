"""The rounds of a run as the papers' cost formulas see them, from its settled calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from cloud.money.billing.full_bill import PaidCall, paid_calls
from cloud.money.billing.paper_formulas import FORMULAS, FormulaRound, PaperFormula
from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.work_file import RunSegment

PAPERS = ("nitro-intended", "nitro-active", "minionsrl", "stellaris", "siren")


def paper_costs(segments: Iterable[RunSegment], book: PriceBook) -> list[tuple[PaperFormula, int]]:
    """Return what each paper's own formula says that this run cost, in picodollars."""
    rounds = [times for segment in segments for times in round_times(segment)]
    return [(FORMULAS[name], FORMULAS[name].cost(rounds, book)) for name in PAPERS]


def round_times(segment: RunSegment) -> list[FormulaRound]:
    """Return every round that made a version. Overlapping rounds are cut where the previous one ended, to count
    once.

    An evaluation counts with the time in which only it was running. Before the first round machines boot, which no
    paper counts: their clocks begin when all machines are ready.
    """
    rounds: dict[int, list[PaidCall]] = defaultdict(list)
    for call in paid_calls(segment):
        if call.done:
            rounds[call.work.round_no].append(call)
    spans = list(_spans(rounds))
    if not spans:
        return []
    begins = [begin_s for _, begin_s, _ in spans[1:]] + [float("inf")]
    return [
        _times(rounds[number], end_s - begin_s, end_s, next_begin_s)
        for (number, begin_s, end_s), next_begin_s in zip(spans, begins, strict=True)
    ]


def _spans(rounds: dict[int, list[PaidCall]]) -> Iterator[tuple[int, float, float]]:
    """Yield the number, begin and end of each round that made a version."""
    before_s = float("-inf")
    for number in sorted(rounds):
        ends = [call.seconds("landed_s") for call in rounds[number] if call.kind.makes_version]
        if not ends:
            continue
        sent = [call.seconds("sent_s") for call in rounds[number] if call.kind.role != "judging"]
        end_s = max(ends)
        begin_s = min(max(before_s, min(sent)), end_s)
        first = before_s == float("-inf")
        yield number, min(begin_s + _boot_s(rounds[number]), end_s) if first else begin_s, end_s
        before_s = end_s


def _boot_s(calls: list[PaidCall]) -> float:
    """Return how long the first calls of a run waited for machines to be ready."""
    actors = [call.seconds("startup_s") for call in calls if call.kind.role == "sampling"]
    learner = [call.seconds("startup_s") for call in calls if call.kind.role == "learning"]
    return min(actors, default=0.0) + min(learner, default=0.0)


def _times(calls: list[PaidCall], round_s: float, end_s: float, next_begin_s: float) -> FormulaRound:
    sampling = [call for call in calls if call.kind.role == "sampling"]
    updates = [call for call in calls if call.kind.role == "learning"]
    judged = [call for call in calls if call.kind.role == "judging"]
    begin_s = max(end_s, min((call.seconds("sent_s") for call in judged), default=end_s))
    over_s = min(next_begin_s, max((call.seconds("landed_s") for call in judged), default=end_s))
    return FormulaRound(
        round_s=round_s,
        update_s=sum(call.seconds("run_s") for call in updates),
        sampling_s=tuple(call.seconds("run_s") for call in sampling),
        memory_mb=max((call.work.memory_mb for call in sampling), default=0),
        evaluation_s=max(0.0, over_s - begin_s),
        learners=_most_at_once(updates),
    )


def _most_at_once(calls: list[PaidCall]) -> int:
    """Return how many of these calls were in flight together at most; at least 1."""
    changes = [(call.seconds("sent_s"), 1) for call in calls]
    changes += [(call.seconds("landed_s"), -1) for call in calls]
    in_flight = most = 0
    for _, change in sorted(changes):
        in_flight += change
        most = max(most, in_flight)
    return max(1, most)
