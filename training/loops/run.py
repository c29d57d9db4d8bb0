"""The steps that all loops share: create calls, advance by a version, evaluate, save checkpoints, end the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from training.checkpoints import Progress
from training.codec import Document, decode
from training.deadlines import Deadlines
from training.loops.attempts import attempts_of
from training.loops.evaluation import Evaluation
from training.loops.flight import Flight, Landed, Tally
from training.loops.round_report import Learned, round_report
from training.messages import (
    OWN_ENDS,
    BlobRef,
    Call,
    CheckpointSaved,
    Event,
    Outcome,
    RoundFinished,
    Stopped,
)
from training.ports import CheckpointStore, ControlSource, Metered, Platform
from training.reports import GradientsReport, Spend
from training.scaling.plan import Bounds, Plan
from training.seeds import derive
from training.stopping import Halt, fraction_done, verdict
from training.tasks.task import Task
from training.tasks.training import Training
from training.unfinished import Unfinished

HISTORY_KEPT = 64


class Run:
    """One run of a task. `progress` is the state between two versions. Between two rounds it can be saved.

    Versions and rounds count on their own: `new_version` takes what an update made, `end_round` reports all versions
    since the last round. When a round is over is the loop's to say; most end it with each version.
    """

    def __init__(
        self,
        task: Task[Any],
        platform: Platform,
        checkpoints: CheckpointStore,
        control: ControlSource,
        progress: Progress,
        call_prefix: str,
    ) -> None:
        self.task = task
        self.spec: Training = task.spec
        self.progress = progress
        self.flight = Flight(platform, control, deadlines := Deadlines(self.spec.longest_call_s))
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
        self._memory_mb = task.spec.memory_mb
        self._learned: list[Learned] = []
        self._made_before = _progress_in_no_round(progress)
        self.last_failure = "no actor returned a result"

    def now_s(self) -> float:
        """Return the seconds of the platform's time since the run began, earlier processes included."""
        return self._platform.now_s() - self._began_s

    def over(self) -> Halt | None:
        """Return why the run ends before the next round, or None: by its stop rule, by the user or by the budget."""
        spec = self.spec
        halt = verdict(spec.stop, self.progress, spec.score, spec.progress_unit, spec.round_name)
        if halt is not None:
            return halt
        drain = self._control().drain
        return self.flight.check_control() or (Halt("budget", drain) if drain else None)

    @property
    def bounds(self) -> Bounds:
        """The bounds there are now, by the user and by the budget."""
        return self._control().bounds

    @property
    def actors_at_most(self) -> int:
        """How many actors a round may have, by the scaling policy and by those bounds."""
        return min(self.spec.scaling.largest, self.bounds.actors_max)

    def plan(self) -> Plan:
        """Return the plan of the next round. The time of this decision is reported with the round's update."""
        seed = derive(self.spec.seed, "scaling", self.progress.round_no + 1)
        began_s = self._platform.now_s()
        bounds = replace(self.bounds, memory_mb=self.spec.memory_mb)
        plan = self.spec.scaling.decide(self.progress.history, bounds, seed, self.spec.score)
        self._deciding_s = self._platform.now_s() - began_s
        self._memory_mb = plan.memory_mb
        return plan

    def sample(self, slot: int, serial: int, env_state: bytes | None) -> Call:
        """Return a call that makes data for `slot` with the newest version. `serial` numbers the slot's calls over
        the run.
        """
        request = self.task.sample(slot)
        return Call(
            id=self._id(f"s{slot}-{serial}"),
            request=request,
            where="actor",
            round_no=self.progress.round_no + 1,
            seed=derive(self.spec.seed, "rollout", slot, serial),
            deadline_s=self._deadlines.for_kind(request.kind),
            memory_mb=self._memory_mb,
            weights=self._weights,
            env_state=env_state,
        )

    def descend(self, slot: int, number: int, env_state: bytes | None) -> Call:
        """Return a call that learns from slice `number` of the data, from the newest version on."""
        request = self.task.slice(number, slot)
        return Call(
            id=self._id(f"s{slot}-{number}"),
            request=request,
            where="actor",
            round_no=self.progress.round_no + 1,
            seed=derive(self.spec.seed, "slice", number),
            deadline_s=self._deadlines.for_kind(request.kind),
            memory_mb=self._memory_mb,
            weights=self._weights,
            env_state=env_state,
            inputs=self.task.inputs_of(request),
        )

    def learn(self, payloads: Sequence[bytes]) -> Call:
        """Return a call that makes the next version from the current state and this data."""
        request = self.task.learn(self.fraction_done())
        return Call(
            id=self._id("update"),
            request=request,
            where="learner",
            round_no=self.progress.round_no + 1,
            seed=derive(self.spec.seed, "update", self.progress.version + 1),
            deadline_s=self._deadlines.for_kind(request.kind),
            memory_mb=self._memory_mb,
            inputs=(self.progress.learner, *payloads),
            decision_macs=self.spec.scaling.decision_macs,
            decision_s=self._deciding_s,
        )

    def call(self, what: str, request: Any, **parts: Any) -> Call:
        """Return a call of any kind for the round in progress. `what` is for its id; `parts` are its other fields."""
        return Call(
            id=self._id(what),
            request=request,
            round_no=self.progress.round_no + 1,
            deadline_s=self._deadlines.for_kind(request.kind),
            memory_mb=self._memory_mb,
            **parts,
        )

    def decided_call(self, what: str, request: Any, **parts: Any) -> Call:
        """Return the same with the decision how many actors the round has, for the call that makes a version."""
        decision = {"decision_macs": self.spec.scaling.decision_macs, "decision_s": self._deciding_s}
        return self.call(what, request, **parts, **decision)

    def publish(self, blob: bytes) -> BlobRef:
        """Store other bytes of the newest version, for calls that name them."""
        return self._platform.publish(self.progress.version, blob)

    def fraction_done(self) -> float:
        return fraction_done(self.spec.stop, self.progress)

    def advance(
        self,
        plan: Plan,
        updated: Outcome,
        tally: Tally,
        *,
        started_s: float,
        collect_s: float,
        replayed: bool = False,
        **changes: Any,
    ) -> Iterator[Event]:
        """Advance to the version that `updated` made and end the round with it. For loops with a version a round."""
        self.new_version(updated, replayed=replayed)
        yield from self.end_round(plan, tally, started_s=started_s, collect_s=collect_s, **changes)

    def new_version(self, updated: Outcome, *, replayed: bool = False) -> None:
        """Advance to the version that `updated` made, and publish it. It made no progress if its data was `replayed`:
        an earlier version had learned from it.
        """
        result = decode(updated.payload)
        learner, weights = result.pop("state"), result.pop("weights")
        took_s = max(0.0, updated.finished_s - updated.started_s)
        learned = Learned(result, updated.usage, took_s, replayed)
        self._learned.append(learned)
        self.progress = replace(
            self.progress,
            learner=learner,
            weights=weights,
            version=result["version"],
            total_env_steps=self.progress.total_env_steps + learned.amount,
        )
        self._weights = self._platform.publish(self.progress.version, self.progress.weights)

    @property
    def learned_in_round(self) -> int:
        """The progress that the versions since the last round have made, in the unit of the training."""
        return sum(learned.amount for learned in self._learned)

    @property
    def versions_in_round(self) -> int:
        """How many versions no round has reported yet."""
        return len(self._learned)

    @property
    def last_learned(self) -> Document:
        """The result of the newest version's update, beside its state and weights."""
        return self._learned[-1].result

    @property
    def learning_s_in_round(self) -> float:
        """The seconds that making the versions since the last round took."""
        return sum(learned.took_s for learned in self._learned)

    def end_round(
        self,
        plan: Plan,
        tally: Tally,
        *,
        started_s: float,
        collect_s: float,
        dropped_trajectories: int = 0,
        gradients: GradientsReport | None = None,
        **changes: Any,
    ) -> Iterator[Event]:
        """Report the versions since the last round as one round; there must be one.

        `changes` are other fields of the progress that change with it: states by slot, data that waits.
        """
        report = round_report(
            self.progress,
            plan,
            tally,
            self._learned,
            memory_mb=plan.memory_mb if self.spec.scaling.memory_range_mb is not None else 0,
            env_steps=self._made_before + self.learned_in_round,
            figures=self.task.round_figures_of([one.result for one in self._learned]),
            started_s=started_s,
            collect_s=collect_s,
            now_s=self.now_s(),
            dropped_trajectories=dropped_trajectories,
            spend=self._spend(),
            gradients=gradients,
        )
        self._learned = []
        self._made_before = 0
        self.progress = replace(
            self.progress,
            round_no=report.round_no,
            elapsed_s=self.now_s(),
            cost_picodollars=self.progress.cost_picodollars + report.cost_picodollars,
            history=(*self.progress.history, report)[-HISTORY_KEPT:],
            training_score=report.score if report.score is not None else self.progress.training_score,
            **changes,
        )
        yield RoundFinished(report=report)

    def attempts(self, call: Call) -> int:
        """Return how often a call may be tried."""
        return attempts_of(self.spec, call.kind)

    def collect_trajectories(self, landed: Sequence[Landed | None], states: dict[int, bytes]) -> list[bytes]:
        """Return the data of calls that were done, in order of slot; updates `states` with theirs."""
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
        return Evaluation(self.task, self.progress, self._weights, self._deadlines, self._id, self._memory_mb)

    @property
    def evaluation_due(self) -> bool:
        return self.progress.round_no % self.spec.evaluation.every_rounds == 0

    def evaluate(self) -> Iterator[Event]:
        """Evaluate now, with no other call in flight."""
        evaluation = self.evaluation()
        landed = yield from self.flight.gather(
            evaluation.calls, self.attempts(evaluation.calls[0]), "the evaluation"
        )
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
            evaluation_means=(*self.progress.evaluation_means, evaluated.score),
            evaluated_round=evaluated.round_no,
        )
        yield evaluated
        if evaluated.score == self.spec.score.best(self.progress.evaluation_means):
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
        spend = self._spend()
        yield Stopped(
            reason_code=halt.code,
            reason=halt.reason,
            rounds=self.progress.round_no,
            env_steps=self.progress.total_env_steps,
            platform_s=self.progress.elapsed_s,
            evaluation_return_mean=means[-1] if means else None,
            episode_return_mean=self.progress.training_score,
            cost_picodollars=spend.spent_picodollars if spend is not None else self.progress.cost_picodollars,
        )

    def _spend(self) -> Spend | None:
        return self._platform.spend() if isinstance(self._platform, Metered) else None

    def _save(self) -> Iterator[Event]:
        if self._saved_round == self.progress.round_no:
            return
        saved = self._checkpoints.save(self.progress.round_no, self.progress.encode(self.spec))
        self._saved_round = self.progress.round_no
        yield CheckpointSaved(
            round_no=saved.round_no,
            name=saved.name,
            sha256=saved.sha256,
            byte_count=saved.byte_count,
            left_out=self.progress.trajectories - self.progress.within_limit().trajectories,
        )

    def _save_best(self, progress: Progress) -> Iterator[Event]:
        """Save the policy with the best evaluation: the one that was evaluated, which may not be the newest."""
        # No run continues from it, so it needs no data that waits.
        policy = replace(progress, waiting=(), replay=(), unfinished=Unfinished())
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


def _progress_in_no_round(progress: Progress) -> int:
    """Return what the run had made within a round when it was saved: the round that goes on reports it too."""
    if progress.history:
        return progress.total_env_steps - progress.history[-1].total_env_steps
    return progress.total_env_steps if progress.round_no == 0 else 0
