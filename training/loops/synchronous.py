"""The synchronous loop: the learner waits for all actors, then everyone gets the new policy.

The same seed gives the same weights with any number of workers, whichever answers first: calls are numbered by slot,
their state and seeds travel with them, and the learner takes trajectories in order of slot.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from training.checkpoints import Progress
from training.codec import decode
from training.deadlines import Deadlines
from training.loops.evaluation import evaluation
from training.loops.flight import Flight, Gathered, Halt
from training.messages import (
    BlobRef,
    Call,
    CheckpointSaved,
    Event,
    RolloutRequest,
    RoundFinished,
    RoundReport,
    Stopped,
    UpdateReport,
    UpdateRequest,
    Usage,
)
from training.ports import CheckpointStore, ControlSource, Metered, Platform
from training.scaling.plan import Plan
from training.seeds import derive
from training.spec import TrainingSpec
from training.stopping import fraction_done, verdict

_HISTORY_KEPT = 64
_BARREN_ROUNDS_ALLOWED = 3
_UPDATE_ATTEMPTS = 2


@dataclass
class SynchronousLoop:
    """One run. `progress` is always the state between two rounds, so it can be saved at any moment."""

    spec: TrainingSpec
    platform: Platform
    checkpoints: CheckpointStore
    control: ControlSource
    progress: Progress
    call_prefix: str = ""

    def __post_init__(self) -> None:
        self._deadlines = Deadlines(self.spec.rollout.deadline_s)
        self._flight = Flight(self.platform, self.control, self._deadlines)
        self._began_s = self.platform.now_s() - self.progress.elapsed_s
        self._saved_round: int | None = None
        self._barren_rounds = 0

    def run(self) -> Iterator[Event]:
        weights = self.platform.publish(self.progress.version, self.progress.weights)
        halt: Halt | None = None
        while True:
            over = verdict(self.spec.stop, self.progress)
            halt = Halt(over.code, over.reason) if over is not None else self._flight.wanted()
            if halt is not None:
                break
            before = self.progress.round_no
            halt = yield from self._round(weights)
            if halt is not None:
                break
            if self.progress.round_no > before:
                weights = self.platform.publish(self.progress.version, self.progress.weights)
                halt = yield from self._after_round(weights)
                if halt is not None:
                    break
        yield from self._end(weights, halt)

    def _round(self, weights: BlobRef) -> Generator[Event, None, Halt | None]:
        round_no = self.progress.round_no + 1
        plan = self.spec.scaling.decide(
            self.progress.history, self.control().bounds, derive(self.spec.seed, "scaling", round_no)
        )
        started_s = self.platform.now_s()
        calls = [self._rollout(round_no, slot, weights) for slot in range(plan.actors)]
        sampled = yield from self._flight.gather(calls, self.spec.rollout.attempts, f"{plan.actors} actors")
        collected_s = self.platform.now_s()
        if sampled.halt is not None:
            return sampled.halt
        if not sampled.done:
            return self._barren(f"no actor of round {round_no} came back: {sampled.last_failure}")
        updated = yield from self._flight.gather(
            [self._update(round_no, sampled)], _UPDATE_ATTEMPTS, "the learner"
        )
        if updated.halt is not None:
            return updated.halt
        if not updated.done:
            return Halt("failing", f"the update of round {round_no} failed: {updated.last_failure}")
        report = self._advance(plan, sampled, updated, started_s, collected_s)
        yield RoundFinished(report=report)
        return None

    def _barren(self, reason: str) -> Halt | None:
        self._barren_rounds += 1
        return Halt("failing", reason) if self._barren_rounds >= _BARREN_ROUNDS_ALLOWED else None

    def _rollout(self, round_no: int, slot: int, weights: BlobRef) -> Call:
        rollout = self.spec.rollout
        # A round that nobody came back from is tried again under its number, with ids of its own.
        trial = f"-t{self._barren_rounds}" if self._barren_rounds else ""
        return Call(
            id=f"{self.call_prefix}r{round_no}-s{slot}{trial}-a1",
            request=RolloutRequest(
                environment=self.spec.environment,
                environments=rollout.environments_per_actor,
                steps=rollout.steps_per_call,
                slot=slot,
                discount=self.spec.algorithm.discount,
            ),
            where="actor",
            round_no=round_no,
            seed=derive(self.spec.seed, "rollout", slot, round_no),
            deadline_s=self._deadlines.for_kind("rollout"),
            memory_mb=rollout.memory_mb,
            weights=weights,
            env_state=self.progress.env_states.get(slot),
        )

    def _update(self, round_no: int, sampled: Gathered) -> Call:
        return Call(
            id=f"{self.call_prefix}r{round_no}-update-a1",
            request=UpdateRequest(
                algorithm=self.spec.algorithm,
                network=self.spec.network,
                progress=fraction_done(self.spec.stop, self.progress),
            ),
            where="learner",
            round_no=round_no,
            seed=derive(self.spec.seed, "update", round_no),
            deadline_s=self._deadlines.for_kind("update"),
            memory_mb=self.spec.rollout.memory_mb,
            inputs=(self.progress.learner, *(outcome.payload for outcome in sampled.in_order())),
        )

    def _advance(
        self, plan: Plan, sampled: Gathered, updated: Gathered, started_s: float, collected_s: float
    ) -> RoundReport:
        """Step to the state after the round, and report it."""
        self._barren_rounds = 0
        learner_outcome = updated.done[0]
        result = decode(learner_outcome.payload)
        outcomes = sampled.in_order()
        usage = _summed([outcome.usage for outcome in outcomes])
        cost = sampled.cost_picodollars + updated.cost_picodollars
        now_s = self.platform.now_s()
        total_env_steps = self.progress.total_env_steps + usage.env_steps
        report = RoundReport(
            round_no=self.progress.round_no + 1,
            version=result["version"],
            actors=plan.actors,
            plan_reason=plan.why,
            env_steps=usage.env_steps,
            total_env_steps=total_env_steps,
            episodes=result["episodes"],
            episode_return_mean=result["episode_return_mean"],
            episode_length_mean=result["episode_length_mean"],
            update=UpdateReport.model_validate(result["report"]),
            started_s=started_s - self._began_s,
            collect_s=collected_s - started_s,
            update_s=now_s - collected_s,
            total_s=now_s - started_s,
            cold_starts=sum(outcome.usage.cold_start for outcome in outcomes),
            failed_calls=sampled.failed_calls + updated.failed_calls,
            retried_calls=sampled.retried_calls + updated.retried_calls,
            usage=usage,
            learner_usage=learner_outcome.usage,
            cost_picodollars=cost,
            spend=self.platform.spend() if isinstance(self.platform, Metered) else None,
        )
        states = dict(self.progress.env_states)
        for slot, outcome in sampled.done.items():
            if outcome.env_state is not None:
                states[slot] = outcome.env_state
        seen = result["episode_return_mean"]
        self.progress = replace(
            self.progress,
            learner=result["state"],
            weights=result["weights"],
            version=result["version"],
            round_no=report.round_no,
            total_env_steps=total_env_steps,
            elapsed_s=now_s - self._began_s,
            cost_picodollars=self.progress.cost_picodollars + cost,
            env_states=states,
            history=(*self.progress.history, report)[-_HISTORY_KEPT:],
            episode_return_mean=seen if seen is not None else self.progress.episode_return_mean,
        )
        return report

    def _after_round(self, weights: BlobRef) -> Generator[Event, None, Halt | None]:
        halt = None
        if self.progress.round_no % self.spec.evaluation.every_rounds == 0:
            halt = yield from self._evaluate(weights)
        if self.progress.round_no % self.spec.checkpoints.every_rounds == 0 or self.control().checkpoint_now:
            yield from self._checkpoint()
        return halt

    def _evaluate(self, weights: BlobRef) -> Generator[Event, None, Halt | None]:
        self.progress, halt = yield from evaluation(
            self.spec, self.progress, weights, self._flight, self._deadlines, self.call_prefix, self._clock
        )
        return halt

    def _clock(self) -> float:
        return self.platform.now_s() - self._began_s

    def _checkpoint(self) -> Generator[Event, None, None]:
        if self._saved_round == self.progress.round_no:
            return
        saved = self.checkpoints.save(self.progress.round_no, self.progress.encode(self.spec))
        self._saved_round = self.progress.round_no
        yield CheckpointSaved(
            round_no=saved.round_no, name=saved.name, sha256=saved.sha256, byte_count=saved.byte_count
        )

    def _end(self, weights: BlobRef, halt: Halt) -> Iterator[Event]:
        """A run that came to its own end is judged once more; every run leaves a checkpoint and its last words."""
        own_end = halt.code in ("target", "rounds", "steps", "minutes", "no_progress")
        if own_end and self.progress.round_no and self.progress.evaluated_round != self.progress.round_no:
            weights = self.platform.publish(self.progress.version, self.progress.weights)
            yield from self._evaluate(weights)
        if self.progress.round_no:
            yield from self._checkpoint()
        means = self.progress.evaluation_means
        spend = self.platform.spend() if isinstance(self.platform, Metered) else None
        yield Stopped(
            reason_code=halt.code,
            reason=halt.reason,
            rounds=self.progress.round_no,
            env_steps=self.progress.total_env_steps,
            platform_s=self.progress.elapsed_s,
            evaluation_return_mean=means[-1] if means else None,
            episode_return_mean=self.progress.episode_return_mean,
            cost_picodollars=spend.spent_picodollars if spend is not None else self.progress.cost_picodollars,
        )


def _summed(usages: list[Usage]) -> Usage:
    """The work of several calls together; times are summed too, as they are billed."""
    return Usage(
        env_steps=sum(usage.env_steps for usage in usages),
        inferences=sum(usage.inferences for usage in usages),
        episodes=sum(usage.episodes for usage in usages),
        minibatches=sum(usage.minibatches for usage in usages),
        samples=sum(usage.samples for usage in usages),
        bytes_in=sum(usage.bytes_in for usage in usages),
        bytes_out=sum(usage.bytes_out for usage in usages),
        startup_s=sum(usage.startup_s for usage in usages),
        run_s=sum(usage.run_s for usage in usages),
        transfer_s=sum(usage.transfer_s for usage in usages),
        billed_s=sum(usage.billed_s or 0.0 for usage in usages),
        memory_mb=max((usage.memory_mb for usage in usages), default=0),
    )
