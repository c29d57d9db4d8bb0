"""The steps that all loops share: create calls, advance by a version, evaluate, save checkpoints, end the run."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

from training.engine.checkpoints import Progress
from training.engine.codec import Document
from training.engine.deadlines import Deadlines
from training.engine.messages import (
    OWN_ENDS,
    BlobRef,
    Call,
    CheckpointSaved,
    Event,
    Outcome,
    RoundFinished,
    Stopped,
)
from training.engine.ports import CheckpointStore, ControlSource, Metered, Platform
from training.engine.reports import GradientsReport, Spend
from training.engine.seeds import derive
from training.engine.stopping import RunEnd, fraction_done, verdict
from training.engine.unfinished import Unfinished
from training.loops.attempts import attempts_of
from training.loops.evaluation import Evaluation
from training.loops.flight import Flight, Tally
from training.loops.round_report import UnreportedVersion, round_report
from training.scaling.plan import Bounds, Plan
from training.tasks.task import Task
from training.tasks.training import Training

HISTORY_KEPT = 64


class TrainingRun:
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
        self._learned: list[UnreportedVersion] = []
        self._made_before = _progress_in_no_round(progress)

    def now_s(self) -> float:
        """Return the seconds of the platform's time since the run began, earlier processes included."""
        return self._platform.now_s() - self._began_s

    def over(self) -> RunEnd | None:
        """Return why the run ends before the next round, or None: by its stop rule, by the user or by the budget."""
        spec = self.spec
        run_end = verdict(spec.stop, self.progress, spec.score, spec.progress_unit, spec.round_name)
        if run_end is not None:
            return run_end
        drain = self._control().drain
        return self.flight.check_control() or (RunEnd("budget", drain) if drain else None)

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
        return replace(plan, why=self.spec.declaration.say(plan.why))

    def sample_call(self, name: str, slot: int, number: int, slot_state: bytes | None) -> Call:
        """Return a call that makes data for `slot` with the newest version. `number` counts the slot's calls over the
        run, or slices of the data.
        """
        over_epochs, seed = self.spec.loop.over_epochs, self.spec.seed
        request = self.task.slice(number, slot) if over_epochs else self.task.sample(slot)
        return self.call(
            name,
            request,
            where="actor",
            seed=derive(seed, "slice", number) if over_epochs else derive(seed, "rollout", slot, number),
            weights=self._weights,
            slot_state=slot_state,
            inputs=self.task.inputs_of(request),
        )

    def update_call(self, name: str, payloads: Sequence[bytes]) -> Call:
        """Return a call that makes the next version from the current state and this data."""
        return self.decided_call(
            name,
            self.task.learn(self.fraction_done()),
            where="learner",
            seed=derive(self.spec.seed, "update", self.progress.version + 1),
            inputs=(self.progress.learner, *payloads),
        )

    def call(self, name: str, request: Any, **parts: Any) -> Call:
        """Return a call of any kind for the round in progress. `parts` are its other fields."""
        return Call(
            id=f"{name}-a1",
            request=request,
            round_no=self.progress.round_no + 1,
            deadline_s=self._deadlines.for_kind(request.kind),
            memory_mb=self._memory_mb,
            **parts,
        )

    def decided_call(self, name: str, request: Any, **parts: Any) -> Call:
        """Return the same with the decision how many actors the round has, for the call that makes a version."""
        decision = {"decision_macs": self.spec.scaling.decision_macs, "decision_s": self._deciding_s}
        return self.call(name, request, **parts, **decision)

    def publish(self, blob: bytes) -> BlobRef:
        """Store other bytes of the newest version, for calls that name them."""
        return self._platform.publish(self.progress.version, blob)

    def fraction_done(self) -> float:
        return fraction_done(self.spec.stop, self.progress)

    def new_version(self, updated: Outcome, result: Document, *, replayed: bool = False) -> None:
        """Advance to the version that `updated` made, and publish it. It made no progress if its data was `replayed`:
        an earlier version had learned from it.
        """
        learner, weights = result.pop("state"), result.pop("weights")
        took_s = max(0.0, updated.finished_s - updated.started_s)
        learned = UnreportedVersion(result, updated.usage, took_s, replayed)
        self._learned.append(learned)
        self.progress = replace(
            self.progress,
            learner=learner,
            weights=weights,
            version=result["version"],
            total_progress=self.progress.total_progress + learned.amount,
        )
        self._weights = self._platform.publish(self.progress.version, self.progress.weights)

    @property
    def learned_in_round(self) -> int:
        """The progress that the versions since the last round have made, in the unit of the training."""
        return sum(learned.amount for learned in self._learned)

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
        dropped_contributions: int = 0,
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
            progress_made=self._made_before + self.learned_in_round,
            figures=self.task.round_figures_of([version.result for version in self._learned]),
            started_s=started_s,
            collect_s=collect_s,
            now_s=self.now_s(),
            dropped_contributions=dropped_contributions,
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

    def keep(self, **changes: Any) -> None:
        """Store sampled data for the next update, without a new version, so that the next checkpoint holds it."""
        self.progress = replace(self.progress, **changes)
        self._saved_round = None

    def evaluation(self) -> Evaluation:
        """Return an evaluation of the newest policy, not yet sent."""
        return Evaluation(
            self.task,
            self.progress,
            self._weights,
            self._deadlines,
            lambda what: f"{self.name(what)}-a1",
            self._memory_mb,
        )

    @property
    def evaluation_due(self) -> bool:
        return self.progress.round_no % self.spec.evaluation.every_rounds == 0

    def evaluate(self, after: tuple[str, ...]) -> Generator[Event, None, tuple[str, ...]]:
        """Evaluate now, with no other call in flight. Return the names of its calls."""
        evaluation = self.evaluation()
        landed = yield from self.flight.gather(
            evaluation.calls, self.attempts(evaluation.calls[0]), "the evaluation", after
        )
        for landing in landed:
            evaluation.land(landing)
        yield from self.record_evaluation(evaluation)
        return evaluation.names

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

    def end(self, run_end: RunEnd, after: tuple[str, ...]) -> Iterator[Event]:
        """Evaluate once more if the run ended by its own rule, save a checkpoint, and yield `Stopped`. `after` are the
        tasks that landed before.
        """
        if (
            run_end.code in OWN_ENDS
            and self.progress.round_no
            and self.progress.evaluated_round != self.progress.round_no
        ):
            yield from self.evaluate(after)
        if self.progress.round_no or self.progress.holds_data:
            yield from self._save()
        means = self.progress.evaluation_means
        spend = self._spend()
        yield Stopped(
            reason_code=run_end.code,
            reason=run_end.reason,
            rounds=self.progress.round_no,
            progress=self.progress.total_progress,
            platform_s=self.progress.elapsed_s,
            evaluated_score=means[-1] if means else None,
            training_score=self.progress.training_score,
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
            left_out=self.progress.contributions - self.progress.within_limit().contributions,
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

    def name(self, what: str) -> str:
        """Return a new task's name, unique within the run."""
        self._serial += 1
        return f"{self._prefix}r{self.progress.round_no + 1}-{what}-n{self._serial}"


def _progress_in_no_round(progress: Progress) -> int:
    """Return what the run had made within a round when it was saved: the round that goes on reports it too."""
    if progress.history:
        return progress.total_progress - progress.history[-1].total_progress
    return progress.total_progress if progress.round_no == 0 else 0
