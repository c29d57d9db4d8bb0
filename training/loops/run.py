"""The steps that all loops share: create calls, advance by a version, evaluate, save checkpoints, end the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from training.calls.rollout import RolloutRequest
from training.calls.update import UpdateRequest
from training.checkpoints import Progress
from training.codec import decode
from training.deadlines import Deadlines
from training.loops.evaluation import Evaluation
from training.loops.flight import Flight, Landed, Tally
from training.messages import OWN_ENDS, Call, CheckpointSaved, Event, Outcome, RoundFinished, Stopped
from training.ports import CheckpointStore, ControlSource, Metered, Platform
from training.reports import RoundReport, UpdateReport, Usage
from training.scaling.plan import Plan
from training.seeds import derive
from training.spec import TrainingSpec
from training.stopping import Halt, fraction_done, verdict

HISTORY_KEPT = 64


class Run:
    """One run of a spec. `progress` is always the state between two versions, so it can be saved at any moment."""

    def __init__(
        self,
        spec: TrainingSpec,
        platform: Platform,
        checkpoints: CheckpointStore,
        control: ControlSource,
        progress: Progress,
        call_prefix: str,
    ) -> None:
        self.spec = spec
        self.progress = progress
        self.flight = Flight(platform, control, deadlines := Deadlines(spec.rollout.deadline_s))
        self._platform = platform
        self._checkpoints = checkpoints
        self._control = control
        self._deadlines = deadlines
        self._prefix = call_prefix
        self._began_s = platform.now_s() - progress.elapsed_s
        self._saved_round: int | None = None
        self._weights = platform.publish(progress.version, progress.weights)
        self._serial = 0
        self._deciding_s = 0.0
        self._memory_mb = spec.rollout.memory_mb
        self.last_failure = "no actor returned a result"

    def now_s(self) -> float:
        """Return the seconds of the platform's time since the run began, earlier processes included."""
        return self._platform.now_s() - self._began_s

    def over(self) -> Halt | None:
        """Return why the run ends before the next round, or None: by its stop rule, by the user or by the budget."""
        if (halt := verdict(self.spec.stop, self.progress)) is not None:
            return halt
        drain = self._control().drain
        return self.flight.check_control() or (Halt("budget", drain) if drain else None)

    def plan(self) -> Plan:
        """Return the plan of the next round. The time of this decision is reported with the round's update."""
        seed = derive(self.spec.seed, "scaling", self.progress.round_no + 1)
        began_s = self._platform.now_s()
        bounds = replace(self._control().bounds, memory_mb=self.spec.rollout.memory_mb)
        plan = self.spec.scaling.decide(self.progress.history, bounds, seed)
        self._deciding_s = self._platform.now_s() - began_s
        self._memory_mb = plan.memory_mb
        return plan

    def rollout(self, slot: int, serial: int, env_state: bytes | None) -> Call:
        """Return a call for a fragment of `slot` with the newest policy. `serial` numbers the slot's fragments over
        the run.
        """
        rollout = self.spec.rollout
        return Call(
            id=self._id(f"s{slot}-{serial}"),
            request=RolloutRequest(
                environment=self.spec.environment,
                environments=rollout.environments_per_actor,
                steps=rollout.steps_per_call,
                slot=slot,
                discount=self.spec.algorithm.discount,
            ),
            where="actor",
            round_no=self.progress.round_no + 1,
            seed=derive(self.spec.seed, "rollout", slot, serial),
            deadline_s=self._deadlines.for_kind("rollout"),
            memory_mb=self._memory_mb,
            weights=self._weights,
            env_state=env_state,
        )

    def update(self, payloads: Sequence[bytes]) -> Call:
        """Return a call that updates the current state by these trajectories."""
        round_no = self.progress.round_no + 1
        return Call(
            id=self._id("update"),
            request=UpdateRequest(
                algorithm=self.spec.algorithm,
                network=self.spec.network,
                progress=fraction_done(self.spec.stop, self.progress),
                staleness_limit=self.spec.loop.staleness_limit,
                measures=self.spec.scaling.measures,
            ),
            where="learner",
            round_no=round_no,
            seed=derive(self.spec.seed, "update", round_no),
            deadline_s=self._deadlines.for_kind("update"),
            memory_mb=self._memory_mb,
            inputs=(self.progress.learner, *payloads),
            decision_macs=self.spec.scaling.decision_macs,
            decision_s=self._deciding_s,
        )

    def advance(
        self,
        plan: Plan,
        updated: Outcome,
        tally: Tally,
        *,
        started_s: float,
        collect_s: float,
        **changes: Any,
    ) -> Iterator[Event]:
        """Advance to the version that `updated` made, publish and report it, then evaluate and save if they are due.

        `changes` are other fields of the progress that change with it: environments' states, data that waits.
        """
        result = decode(updated.payload)
        dropped = changes.pop("dropped_trajectories", 0)
        report = self._report(plan, updated, tally, result, started_s, collect_s, dropped)
        seen = result["episode_return_mean"]
        self.progress = replace(
            self.progress,
            learner=result["state"],
            weights=result["weights"],
            version=result["version"],
            round_no=report.round_no,
            total_env_steps=report.total_env_steps,
            elapsed_s=self.now_s(),
            cost_picodollars=self.progress.cost_picodollars + report.cost_picodollars,
            history=(*self.progress.history, report)[-HISTORY_KEPT:],
            episode_return_mean=seen if seen is not None else self.progress.episode_return_mean,
            **changes,
        )
        self._weights = self._platform.publish(self.progress.version, self.progress.weights)
        yield RoundFinished(report=report)

    def collect_trajectories(self, landed: Sequence[Landed | None], states: dict[int, bytes]) -> list[bytes]:
        """Return the trajectories of rollouts that were done, in order of slot; updates `states` with theirs."""
        trajectories = []
        for slot, one in enumerate(landed):
            if one is None or one.outcome is None:
                self.last_failure = one.reason if one is not None else self.last_failure
                continue
            trajectories.append(one.outcome.payload)
            if one.outcome.env_state is not None:
                states[slot] = one.outcome.env_state
        return trajectories

    def keep(self, **changes: Any) -> None:
        """Store sampled data for the next update, without a new version, so that the next checkpoint holds it."""
        self.progress = replace(self.progress, **changes)
        self._saved_round = None

    def evaluation(self) -> Evaluation:
        """Return an evaluation of the newest policy, not yet sent."""
        return Evaluation(self.spec, self.progress, self._weights, self._deadlines, self._id, self._memory_mb)

    @property
    def evaluation_due(self) -> bool:
        return self.progress.round_no % self.spec.evaluation.every_rounds == 0

    def evaluate(self) -> Iterator[Event]:
        """Evaluate now, with no other call in flight."""
        evaluation = self.evaluation()
        landed = yield from self.flight.gather(evaluation.calls, self.spec.rollout.attempts, "the evaluation")
        for one in landed:
            if one is not None:
                evaluation.land(one)
        yield from self.record_evaluation(evaluation)

    def record_evaluation(self, evaluation: Evaluation) -> Iterator[Event]:
        """Add a finished evaluation to the progress and yield its event."""
        evaluated = evaluation.result(self.now_s())
        if evaluated is None:
            return
        self.progress = replace(
            self.progress,
            cost_picodollars=self.progress.cost_picodollars + evaluated.cost_picodollars,
            elapsed_s=self.now_s(),
            evaluation_means=(*self.progress.evaluation_means, evaluated.return_mean),
            evaluated_round=evaluated.round_no,
        )
        yield evaluated
        if evaluated.return_mean == max(self.progress.evaluation_means):
            yield from self._save_best(evaluation.progress)

    def save_if_due(self) -> Iterator[Event]:
        if self.progress.round_no % self.spec.checkpoints.every_rounds == 0 or self._control().checkpoint_now:
            yield from self._save()

    def end(self, halt: Halt) -> Iterator[Event]:
        """Evaluate once more if the run ended by its own rule, save a checkpoint, and yield `Stopped`."""
        if (
            halt.code in OWN_ENDS
            and self.progress.round_no
            and self.progress.evaluated_round != self.progress.round_no
        ):
            yield from self.evaluate()
        if self.progress.round_no or self.progress.holds_data:
            yield from self._save()
        means = self.progress.evaluation_means
        spend = self._platform.spend() if isinstance(self._platform, Metered) else None
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

    def _save(self) -> Iterator[Event]:
        if self._saved_round == self.progress.round_no:
            return
        saved = self._checkpoints.save(self.progress.round_no, self.progress.encode(self.spec))
        self._saved_round = self.progress.round_no
        yield CheckpointSaved(
            round_no=saved.round_no, name=saved.name, sha256=saved.sha256, byte_count=saved.byte_count
        )

    def _save_best(self, progress: Progress) -> Iterator[Event]:
        """Save the policy with the best evaluation: the one that was evaluated, which may not be the newest."""
        # No run continues from it, so it needs no data that waits.
        policy = replace(progress, waiting=(), replay=())
        saved = self._checkpoints.save(progress.round_no, policy.encode(self.spec), best=True)
        yield CheckpointSaved(
            round_no=saved.round_no,
            name=saved.name,
            sha256=saved.sha256,
            byte_count=saved.byte_count,
            best=True,
        )

    def _id(self, what: str) -> str:
        """Return a call's id, unique within the run, retries included."""
        self._serial += 1
        return f"{self._prefix}r{self.progress.round_no + 1}-{what}-n{self._serial}-a1"

    def _report(
        self,
        plan: Plan,
        updated: Outcome,
        tally: Tally,
        result: dict[str, Any],
        started_s: float,
        collect_s: float,
        dropped: int,
    ) -> RoundReport:
        total_s = self.now_s() - started_s
        return RoundReport(
            round_no=self.progress.round_no + 1,
            version=result["version"],
            actors=plan.actors,
            plan_reason=plan.why,
            env_steps=result["env_steps"],
            total_env_steps=self.progress.total_env_steps + result["env_steps"],
            episodes=result["episodes"],
            episode_return_mean=result["episode_return_mean"],
            episode_length_mean=result["episode_length_mean"],
            update=UpdateReport.model_validate(result["report"]),
            curvature=result["curvature"],
            noise_scale=result["noise_scale"],
            policy_shift=result["policy_shift"],
            staleness_mean=result["staleness_mean"],
            dropped_trajectories=dropped,
            started_s=started_s,
            collect_s=collect_s,
            update_s=max(0.0, updated.finished_s - updated.started_s),
            total_s=total_s,
            cold_starts=tally.cold_starts,
            failed_calls=tally.failed_calls,
            retried_calls=tally.retried_calls,
            usage=sum_usages(tally.usages),
            learner_usage=updated.usage,
            cost_picodollars=tally.cost_picodollars,
            spend=self._platform.spend() if isinstance(self._platform, Metered) else None,
        )


def sum_usages(usages: Sequence[Usage]) -> Usage:
    """Return the work of several calls together. Times are summed too, as they are billed."""
    return Usage(
        env_steps=sum(usage.env_steps for usage in usages),
        inferences=sum(usage.inferences for usage in usages),
        environment_s=sum(usage.environment_s for usage in usages),
        inference_s=sum(usage.inference_s for usage in usages),
        episodes=sum(usage.episodes for usage in usages),
        minibatches=sum(usage.minibatches for usage in usages),
        samples=sum(usage.samples for usage in usages),
        macs=max((usage.macs for usage in usages), default=0),
        pictures=any(usage.pictures for usage in usages),
        hessian_products=sum(usage.hessian_products for usage in usages),
        bytes_in=sum(usage.bytes_in for usage in usages),
        bytes_out=sum(usage.bytes_out for usage in usages),
        startup_s=sum(usage.startup_s for usage in usages),
        run_s=sum(usage.run_s for usage in usages),
        transfer_s=sum(usage.transfer_s for usage in usages),
        billed_s=sum(usage.billed_s or 0.0 for usage in usages),
        memory_mb=max((usage.memory_mb for usage in usages), default=0),
    )
