"""What the papers and their released code say a training costs: each one's own formula, beside the full bill.

A formula takes the times of rounds and leaves out what its authors left out; its `words` say what that is. The whole
time of a training is summed first and priced once, so a formula is rounded once for each of its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.price_parts import MB_PER_GB, container_parts, machine_parts, share_of
from cloud.money.pricing import PricedPart, lines_of, price_line, total
from training.engine.ports import PriceLine

_NS = 10**9
_PAPER = "paper"
_AWS, _AZURE = "us-east-1", "eastus"
# Stellaris divides the price of the learner's machine by the learners that share its GPU.
_SHARERS = 4


@dataclass(frozen=True)
class FormulaRound:
    """One round as the formulas see it.

    `round_s`: from the first rollout's launch to the update's end, without evaluation, which took `evaluation_s`
    more. `sampling_s`: the duration of each sampling call. `learners`: how many learned at once.
    """

    round_s: float
    update_s: float
    sampling_s: tuple[float, ...]
    memory_mb: int
    evaluation_s: float = 0.0
    learners: int = 1

    @property
    def whole_ns(self) -> int:
        return _ns(self.round_s) + _ns(self.evaluation_s)

    @property
    def rollouts_ns(self) -> int:
        """The time of all functions together."""
        return sum(_ns(seconds) for seconds in self.sampling_s)

    @property
    def longest_ns(self) -> int:
        return max((_ns(seconds) for seconds in self.sampling_s), default=0)


_Bill = Callable[[Sequence[FormulaRound], PriceBook], tuple[PriceLine, ...]]


@dataclass(frozen=True)
class PaperFormula:
    """One way to compute what a training costs. `source` is where the formula is published, `words` what it charges."""

    name: str
    source: str
    words: str
    _bill: _Bill

    def bill(self, rounds: Iterable[FormulaRound], book: PriceBook) -> tuple[PriceLine, ...]:
        """Return the formula's lines for all rounds together."""
        return self._bill(tuple(rounds), book)

    def cost(self, rounds: Iterable[FormulaRound], book: PriceBook) -> int:
        """Return the formula's result in picodollars."""
        return total(self.bill(rounds, book))


@dataclass(frozen=True)
class MachineGroup:
    """So many machines of one kind in a cluster."""

    sku: str
    region: str
    count: int = 1


def server_cluster(
    name: str, source: str, machines: tuple[MachineGroup, ...], *, ip_and_disk: bool
) -> PaperFormula:
    """Return a formula that pays all these machines for the whole time, busy or not."""

    def bill(rounds: Sequence[FormulaRound], book: PriceBook) -> tuple[PriceLine, ...]:
        whole_ns = sum(times.whole_ns for times in rounds)
        return tuple(
            line
            for kind in machines
            for line in lines_of(
                machine_parts(book, kind.sku, kind.region, count=kind.count, ip_and_disk=ip_and_disk),
                whole_ns,
            )
        )

    listed = " and ".join(f"{kind.count} × {kind.sku}" for kind in machines)
    return PaperFormula(
        name, source, f"{listed} for the whole time, evaluation and idle cores included", bill
    )


def _nitro_intended(rounds: Sequence[FormulaRound], book: PriceBook) -> tuple[PriceLine, ...]:
    longest_ns = sum(times.longest_ns for times in rounds)
    actor = PricedPart(book.row("paper.serverless_actor", _PAPER))
    learner = machine_parts(book, "paper.server_learner", _PAPER)
    return (*lines_of(learner, longest_ns), actor.line(sum(times.rollouts_ns for times in rounds)))


def _nitro_active(rounds: Sequence[FormulaRound], book: PriceBook) -> tuple[PriceLine, ...]:
    learner = machine_parts(book, "paper.server_learner", _PAPER)
    actors = machine_parts(book, "paper.server_actor.nitro", _PAPER)
    return lines_of((*learner, *actors), sum(times.whole_ns for times in rounds))


def _stellaris(rounds: Sequence[FormulaRound], book: PriceBook) -> tuple[PriceLine, ...]:
    learner_ns = sum(times.whole_ns * times.learners for times in rounds)
    learner = share_of(machine_parts(book, "paper.server_learner", _PAPER), _SHARERS)
    actors = machine_parts(book, "paper.server_actor.stellaris", _PAPER)
    whole_ns = sum(times.whole_ns for times in rounds)
    return (*lines_of(learner, learner_ns), *lines_of(actors, whole_ns))


def _minionsrl(rounds: Sequence[FormulaRound], book: PriceBook) -> tuple[PriceLine, ...]:
    gpu = PricedPart(book.row("aci.gpu.v100", _AZURE))
    lines = [gpu.line(sum(_ns(times.update_s) for times in rounds))]
    for memory_mb in sorted({times.memory_mb for times in rounds}):
        actors_ns = sum(times.rollouts_ns for times in rounds if times.memory_mb == memory_mb)
        lines.extend(lines_of(container_parts(book, _AZURE, 1, memory_mb), actors_ns))
    return tuple(lines)


def _siren(rounds: Sequence[FormulaRound], book: PriceBook) -> tuple[PriceLine, ...]:
    mb_ns = sum(times.rollouts_ns * times.memory_mb for times in rounds)
    return (price_line(book.row("lambda.duration.x86", _AWS), mb_ns, MB_PER_GB * _NS),)


def _ns(seconds: float) -> int:
    return round(seconds * _NS)


_FORMULAS = (
    PaperFormula(
        "nitro-intended",
        "released code of Nitro, commented out",
        "The learner's machine for the longest function of each round, not for learning; every function by its time at "
        "the price of 1 GB. No request fees, no capacity kept ready, no evaluation.",
        _nitro_intended,
    ),
    PaperFormula(
        "nitro-active",
        "released code of Nitro, the line that runs",
        "The learner's machine and the actors' machine for the whole time, whether functions are used or not; "
        "evaluation included, the curvature's measurement and the launching of functions not.",
        _nitro_active,
    ),
    PaperFormula(
        "minionsrl",
        "MinionsRL, its cost C_k; unit prices are today's list, the paper's are not available",
        "The learner's GPU while it learns, one core and its memory for each actor while it samples. No start-up, no "
        "evaluation, no cores beside the GPU.",
        _minionsrl,
    ),
    PaperFormula(
        "stellaris",
        "released code of Stellaris",
        "A quarter of the GPU machine for each learner and the actors' machine, both for the whole time.",
        _stellaris,
    ),
    PaperFormula(
        "siren",
        "Siren: functions, their time and their memory",
        "Every function's time by its memory at Lambda's price. No request fees, no storage.",
        _siren,
    ),
    server_cluster(
        "nitro-cluster",
        "Nitro's serverful testbed",
        (MachineGroup("p3.2xlarge", _AWS), MachineGroup("c5.4xlarge", _AWS)),
        ip_and_disk=True,
    ),
    server_cluster(
        "nitro-large-cluster",
        "Nitro's testbed at large scale",
        (MachineGroup("p3.8xlarge", _AWS), MachineGroup("c5.24xlarge", _AWS)),
        ip_and_disk=True,
    ),
    server_cluster(
        "minionsrl-cluster",
        "MinionsRL's testbed on Azure",
        (MachineGroup("Standard_NC6s_v3", _AZURE), MachineGroup("Standard_E16-8s_v5", _AZURE, 4)),
        # Only the code of the two later papers counts an address and a disk.
        ip_and_disk=False,
    ),
    server_cluster(
        "stellaris-cluster",
        "the machines that the released code of Stellaris charges",
        (MachineGroup("p3.2xlarge", _AWS), MachineGroup("c5.12xlarge", _AWS)),
        ip_and_disk=True,
    ),
    server_cluster(
        "one-machine",
        "no paper: the plain alternative",
        (MachineGroup("c5.4xlarge", _AWS),),
        ip_and_disk=True,
    ),
    server_cluster(
        "one-small-machine",
        "no paper: the smallest plain alternative",
        (MachineGroup("m4.large", _AWS),),
        ip_and_disk=True,
    ),
)
FORMULAS: dict[str, PaperFormula] = {formula.name: formula for formula in _FORMULAS}
