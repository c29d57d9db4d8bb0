"""Epochs as arithmetic, fitted to recorded ones: whole trainings in microseconds, for an agent to rehearse on.

    seconds of a function   t = fixed + F / n + C / (n · speed(m)) + push       (the first epoch: + load / n)
    seconds of the epoch    P = (t + idle) · chance
    dollars                 (n · t · m · price + n · fee) · chance + standing · P

with n functions of m MB, F function-seconds of fetching and C core-seconds of computing in an epoch. A function has
min(m / whole core, most cores) cores; beyond one, only a share of the computing is parallel. The loss is that of the
epoch, whatever n and m are: what more functions cost in loss is learned in real episodes, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from training.engine.reports import Figures, RoundReport, Spend, Usage
from training.rl.networks.inference import NumpyPolicy
from training.scheduling.decisions import PICODOLLARS, EpisodeResult, Floats, Samples
from training.scheduling.episode import log_probs_of
from training.scheduling.siren.state import Measured, first_state, states_of

if TYPE_CHECKING:
    from training.scheduling.siren.decisions import FunctionDecisions
    from training.scheduling.siren.model import SirenSpec

Numbers = npt.NDArray[np.float64]
_SHARES = np.linspace(0.0, 1.0, 101)


class Epochs(NamedTuple):
    """Epochs with so many functions of so much memory, one an element. Those of a function are on average."""

    total_s: Numbers
    usd: Numbers
    fetch_s: Numbers
    compute_s: Numbers
    push_s: Numbers


@dataclass(frozen=True)
class ArithmeticCloud:
    """`losses` are those after epoch 1, 2 and so on; the last one stays. `spread` is the deviation of the logarithm
    of an epoch's chance. Prices are in dollars.
    """

    losses: tuple[float, ...]
    compute_s: float
    fetch_s: float = 0.0
    load_s: float = 0.0
    fixed_s: float = 0.0
    push_s: float = 0.0
    idle_s: float = 0.0
    usd_per_mb_s: float = 0.0
    usd_per_call: float = 0.0
    usd_per_s: float = 0.0
    whole_core_mb: float = 1769.0
    most_cores: float = 6.0
    parallel_share: float = 0.0
    spread: float = 0.0
    sizes_mb: tuple[int, ...] = field(default=())

    def speed(self, memory_mb: npt.ArrayLike) -> Numbers:
        """Return how fast a function computes, in whole cores."""
        return speed(np.asarray(memory_mb), self.parallel_share, self.whole_core_mb, self.most_cores)

    def epochs(
        self, round_no: int, functions: npt.ArrayLike, memory_mb: npt.ArrayLike, normal: npt.ArrayLike = 0.0
    ) -> Epochs:
        """Return what epochs of that number take; `normal` draws their chance."""
        n, m = np.asarray(functions, dtype=np.float64), np.asarray(memory_mb, dtype=np.float64)
        chance = np.exp(self.spread * np.asarray(normal) - 0.5 * self.spread**2)
        fetch_s = (self.fetch_s + (self.load_s if round_no == 1 else 0.0)) / n * chance
        compute_s = self.compute_s / (n * self.speed(m)) * chance
        push_s = np.full_like(n, self.push_s) * chance
        billed_s = self.fixed_s * chance + fetch_s + compute_s + push_s
        total_s = billed_s + self.idle_s * chance
        usd = n * (billed_s * m * self.usd_per_mb_s + self.usd_per_call) + total_s * self.usd_per_s
        return Epochs(total_s, usd, fetch_s, compute_s, push_s)

    def loss_after(self, round_no: int) -> float:
        return self.losses[min(round_no, len(self.losses)) - 1]

    @staticmethod
    def fit(recorded: Sequence[Sequence[RoundReport]]) -> ArithmeticCloud:
        """Return the arithmetic of recorded trainings, of several numbers of functions and sizes of memory.

        Raises ValueError if no round reported its loss, its functions' memory and how long they computed.
        """
        rounds = [one for run in recorded for one in run if one.usage.memory_mb and one.usage.compute_s > 0]
        if not rounds or all(report.score is None for report in rounds):
            raise ValueError(
                "no recorded epoch has a loss and the times of its functions: run trainings with different numbers"
                " of functions and sizes of memory first"
            )
        figures = np.array([_figures_of(report) for report in rounds]).T
        n, m, total, fetch, compute, push, billed, usd = figures
        first = np.array([report.round_no == 1 for report in rounds])
        later = ~first if (~first).any() else np.ones_like(first)
        fetch_s = float(fetch[later].mean())
        load_s = max(0.0, float(fetch[first].mean()) - fetch_s) if first.any() else 0.0
        share = min(_SHARES, key=lambda tried: _unlikeness(compute * speed(m, tried)))
        # The median, as rounds with an evaluation are billed for that as well.
        fixed = (billed - fetch - compute - push) / n
        # An epoch lasts as long as its functions, and what none of them is billed for.
        idle = np.maximum(total - billed / n, 0.0)
        by_second = float(usd.sum() / (billed * m).sum())
        return ArithmeticCloud(
            losses=_losses(rounds),
            compute_s=float((compute * speed(m, share)).mean()),
            fetch_s=fetch_s,
            load_s=load_s,
            fixed_s=max(0.0, float(np.median(fixed))),
            push_s=float((push / n).mean()),
            idle_s=float(np.median(idle)),
            usd_per_mb_s=by_second,
            parallel_share=float(share),
            spread=_unlikeness(compute * speed(m, share)),
            sizes_mb=tuple(sorted({int(size) for size in m})),
        )


def speed(
    memory_mb: Numbers, parallel_share: float, whole_core_mb: float = 1769.0, most_cores: float = 6.0
) -> Numbers:
    """Return the speed of a function in whole cores: its share of one, or by Amdahl's law on several."""
    cores = np.minimum(memory_mb / whole_core_mb, most_cores)
    several = 1.0 / ((1.0 - parallel_share) + parallel_share / np.maximum(cores, 1.0))
    return np.where(cores < 1.0, cores, several)


def _figures_of(report: RoundReport) -> tuple[float, ...]:
    usage = report.usage
    return (
        float(report.actors),
        float(report.memory_mb or usage.memory_mb),
        report.total_s,
        usage.fetch_s,
        usage.compute_s,
        usage.push_s,
        usage.billed_s or usage.run_s,
        report.cost_picodollars / PICODOLLARS,
    )


def _unlikeness(amounts: Numbers) -> float:
    """Return the deviation of logarithms: 0 if all are alike."""
    return float(np.log(amounts).std())


def _losses(rounds: Sequence[RoundReport]) -> tuple[float, ...]:
    """Return the mean loss after each epoch, in logarithms; an epoch that reported none has the last one's."""
    last = max(report.round_no for report in rounds)
    by_epoch: list[list[float]] = [[] for _ in range(last)]
    for report in rounds:
        if report.score is not None and report.score > 0:
            by_epoch[report.round_no - 1].append(report.score)
    found: list[float] = []
    first = next((losses for losses in by_epoch if losses), [1.0])
    for losses in by_epoch:
        mean = float(np.exp(np.log(losses).mean())) if losses else found[-1] if found else max(first)
        found.append(mean)
    return tuple(found)


class LossFigures(Figures):
    """The figures of an epoch that is only arithmetic: its loss."""

    loss: float

    @property
    def score(self) -> float:
        return self.loss


def rounds_of(
    cloud: ArithmeticCloud,
    plans: Sequence[tuple[int, int]],
    *,
    budget_picodollars: int | None = None,
    normals: Sequence[float] = (),
) -> list[RoundReport]:
    """Return a training with these plans of functions and memory as reports, one an epoch."""
    rounds: list[RoundReport] = []
    began_s, spent = 0.0, 0
    for k, (functions, memory_mb) in enumerate(plans, start=1):
        out = cloud.epochs(k, functions, memory_mb, normals[k - 1] if normals else 0.0)
        calls_s = functions * float(out.fetch_s + out.compute_s + out.push_s)
        billed_s = functions * (float(out.total_s) - cloud.idle_s * _chance_of(cloud, normals, k))
        cost = round(float(out.usd) * PICODOLLARS)
        figures: Any = LossFigures(loss=cloud.loss_after(k))
        spent += cost
        limit = budget_picodollars or 0
        rounds.append(
            RoundReport.model_construct(
                round_no=k,
                version=k,
                actors=functions,
                plan_reason="",
                drawn=None,
                memory_mb=memory_mb,
                progress=0,
                total_progress=0,
                figures=figures,
                started_s=began_s,
                collect_s=float(out.total_s),
                update_s=0.0,
                total_s=float(out.total_s),
                cold_starts=0,
                failed_calls=0,
                retried_calls=0,
                usage=Usage(
                    run_s=calls_s,
                    billed_s=billed_s,
                    memory_mb=memory_mb,
                    fetch_s=functions * float(out.fetch_s),
                    compute_s=functions * float(out.compute_s),
                    push_s=functions * float(out.push_s),
                    processor_s=functions * float(out.compute_s * cloud.speed(memory_mb)),
                ),
                learner_usage=Usage(),
                cost_picodollars=cost,
                spend=Spend(spent_picodollars=spent, reserved_picodollars=0, limit_picodollars=limit),
            )
        )
        began_s += float(out.total_s)
    return rounds


def _chance_of(cloud: ArithmeticCloud, normals: Sequence[float], round_no: int) -> float:
    normal = normals[round_no - 1] if normals else 0.0
    return float(np.exp(cloud.spread * normal - 0.5 * cloud.spread**2))


class ArithmeticRehearsals:
    """Plays episodes on an arithmetic cloud, all of an update side by side.

    The epoch that breaks the limit counts as the last one. On a real cloud the ledger would have ended it.
    """

    def __init__(self, cloud: ArithmeticCloud, spec: SirenSpec, decisions: FunctionDecisions) -> None:
        self.cloud = cloud
        self._spec = spec
        self._decisions = decisions

    def play(
        self,
        weights: bytes,
        seeds: Sequence[int],
        budget_picodollars: int | None,
        *,
        explore: bool = True,
    ) -> Sequence[EpisodeResult]:
        spec, cloud, policy = self._spec, self.cloud, NumpyPolicy(weights)
        count, most = len(seeds), spec.rounds
        draws = [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]
        noise = np.stack([draw.standard_normal((most, 2), dtype=np.float32) for draw in draws])
        normals = np.stack([draw.standard_normal(most) for draw in draws])
        budget_usd = None if budget_picodollars is None else budget_picodollars / PICODOLLARS
        states = np.tile(first_state(spec.state), (count, most + 1, 1))
        actions = np.zeros((count, most, 2), dtype=np.float32)
        functions = np.zeros((count, most), dtype=np.int64)
        seconds, dollars = np.zeros((count, most)), np.zeros((count, most))
        lasted = np.full(count, most)
        alive = np.ones(count, dtype=bool)
        for k in range(1, most + 1):
            seen = states[:, k - 1].copy()
            drawn = policy.act(seen, noise[:, k - 1])[0] if explore else policy.best(seen)
            wishes = spec.choices.wishes(drawn)
            actions[:, k - 1] = drawn
            functions[:, k - 1], memory_mb = spec.choices.carried_out(wishes, cloud.sizes_mb)
            out = cloud.epochs(k, functions[:, k - 1], memory_mb, normals[:, k - 1])
            seconds[:, k - 1], dollars[:, k - 1] = out.total_s, out.usd
            left, share = self._left(seconds[:, :k].sum(axis=1), dollars[:, :k].sum(axis=1), budget_usd)
            loss = cloud.loss_after(k)
            functions_s = out.fetch_s + out.compute_s + out.push_s
            cores = out.compute_s * cloud.speed(memory_mb) / functions_s
            measured = Measured(
                float(k), loss, out.total_s, out.fetch_s, out.compute_s, out.push_s, 0.0, cores, left, share
            )
            states[:, k] = states_of(measured, spec.state, spec.scales)
            ends = alive & ((share < 0.0) | (loss <= spec.target_loss))
            lasted[ends] = k
            alive &= ~ends
            if not alive.any():
                break
        return [
            self._episode(states[i], actions[i], functions[i], seconds[i], dollars[i], int(lasted[i]), policy)
            for i in range(count)
        ]

    def _left(
        self, elapsed_s: Numbers, spent_usd: Numbers, budget_usd: float | None
    ) -> tuple[Numbers, Numbers]:
        deadline_s = self._spec.scales.deadline_s
        if deadline_s is not None:
            return deadline_s - elapsed_s, 1.0 - elapsed_s / deadline_s
        if not budget_usd:
            return np.zeros_like(spent_usd), np.ones_like(spent_usd)
        return budget_usd - spent_usd, 1.0 - spent_usd / budget_usd

    def _episode(
        self,
        states: Floats,
        actions: Floats,
        functions: npt.NDArray[np.int64],
        seconds: Numbers,
        dollars: Numbers,
        lasted: int,
        policy: NumpyPolicy,
    ) -> EpisodeResult:
        spec, decisions = self._spec, self._decisions
        loss = self.cloud.loss_after(lasted)
        # The state after the last epoch tells what is left, in either form.
        made_it = loss <= spec.target_loss and float(states[lasted, -1]) >= 0.0
        charged = seconds[:lasted] if spec.objective == "time" else dollars[:lasted]
        rewards = decisions.rewards_of(charged, made_it=made_it)
        seen, done = states[: lasted + 1], actions[:lasted]
        log_probs = log_probs_of(policy.outputs(seen[:-1].copy()), done, spec.spaces)
        return EpisodeResult(
            rounds=lasted,
            platform_s=float(seconds[:lasted].sum()),
            cost_picodollars=round(float(dollars[:lasted].sum()) * PICODOLLARS),
            best=min(self.cloud.losses[:lasted], default=None),
            reached=made_it,
            score=float(rewards.sum()),
            actors=tuple(int(function) for function in functions[:lasted]),
            samples=Samples(seen, done, log_probs, rewards),
        )
