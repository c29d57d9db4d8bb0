"""Drives learners that compute gradients: keeps the weights that their calls need, and measures what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from training.engine.codec import Document, decode
from training.engine.messages import CallFailed, Event, Outcome
from training.engine.reports import GradientsReport
from training.engine.seeds import derive
from training.loops.driver import Driver, LandedUpdate
from training.loops.flight import Landed
from training.loops.occupancy import Occupancy
from training.loops.run import TrainingRun
from training.loops.staleness_aware import StalenessAware
from training.loops.staleness_aware_state import StalenessAwareState
from training.loops.state import (
    ApplyGradients,
    ComputeGradient,
    DropGradient,
    EndRound,
    Landing,
    Step,
)


class GradientDriver(Driver):
    """`_policies` are weights by version, `_parameters` what gradients of the newest version need of the learner."""

    loop: StalenessAwareState

    def __init__(self, run: TrainingRun) -> None:
        super().__init__(run)
        loop = run.spec.loop
        assert isinstance(loop, StalenessAware)
        self._choice = loop
        self._policies = {**run.progress.unfinished.policies, run.progress.version: run.progress.weights}
        self._parameters = run.publish(run.task.parameters(run.progress.learner))
        # The same for all calls of a round, as for one update of the synchronous loop.
        self._fraction_done = run.fraction_done()
        self._occupancy = Occupancy(loop.learners, self.started_s)

    def look(self) -> None:
        self._occupancy.look(self.run.now_s(), **self.loop.busy._asdict())

    def _done(self, landed: Landed, outcome: Outcome) -> Landing:
        if not self.loop.learners.expects(landed.name):
            return super()._done(landed, outcome)
        gradient = decode(outcome.payload)
        return Landing(
            landed.name,
            done=True,
            payload=outcome.payload,
            samples=gradient["env_steps"],
            last=gradient["last"],
            prepared=outcome.slot_state,
            finite=_is_finite(gradient),
            origin=landed,
        )

    def _do(self, step: Step) -> Iterator[Event]:
        match step:
            case ComputeGradient():
                self._compute(step)
            case ApplyGradients():
                self._apply(step)
            case DropGradient():
                landed: Landed = step.landing.origin
                assert landed.outcome is not None
                self._occupancy.drop(step.code, landed.outcome.cost_picodollars or 0)
                yield _dropped(landed, step.reason, step.code)
            case _:
                yield from super()._do(step)

    def _compute(self, step: ComputeGradient) -> None:
        run, slice_ = self.run, step.slice
        others, anchors = step.others, step.anchors
        call = run.call(
            step.name,
            run.task.gradient(self._fraction_done, slice_.passes + 1, len(others), anchors=len(anchors)),
            where=self._choice.where,
            seed=derive(run.spec.seed, "update", slice_.number),
            weights=self._parameters,
            slot_state=slice_.prepared,
            inputs=(
                *(contribution.payload for contribution in slice_.contributions),
                *(self._policies[version] for version in (*others, *anchors)),
            ),
        )
        run.flight.launch(call, run.attempts(call), step.after)

    def _apply(self, step: ApplyGradients) -> None:
        run, release = self.run, step.release
        request = run.task.apply(
            self._fraction_done, release.weights, ends_round=step.ends_round, policies=len(step.behind)
        )
        call = run.decided_call(
            step.name,
            request,
            where="learner",
            seed=derive(run.spec.seed, "apply", run.progress.version + 1),
            inputs=(
                run.progress.learner,
                *(gradient.payload for gradient in release.gradients),
                *(self._policies[version] for version in step.behind),
            ),
        )
        run.flight.launch(call, run.attempts(call), step.after)
        self._occupancy.release(release, step.held)

    def make_version(self, made: LandedUpdate, *, replayed: bool) -> None:
        super().make_version(made, replayed=replayed)
        run = self.run
        self._parameters = run.publish(run.last_learned.pop("parameters"))
        self._policies[run.progress.version] = run.progress.weights
        needed = self.loop.learners.versions
        self._policies = {version: policy for version, policy in self._policies.items() if version in needed}
        self._occupancy.step(run.last_learned)

    def kept(self) -> dict[str, Any]:
        changes = self.loop.kept()
        unfinished = changes["unfinished"]
        policies = {version: self._policies[version] for version in unfinished.policies}
        return {**changes, "unfinished": replace(unfinished, policies=policies)}

    def _begin_round(self) -> None:
        alone = self.loop.judges_alone
        super()._begin_round()
        if alone:
            self._occupancy.begin(self.started_s)

    def _end_round(self, step: EndRound) -> Iterator[Event]:
        run, now_s = self.run, self.run.now_s()
        tally = run.flight.take_tally()
        for outcome in tally.unusable:
            self._occupancy.drop(outcome.reason_code, outcome.cost_picodollars or 0)
        report = self._occupancy.report(now_s, step.bound, step.queue_most)
        if self._choice.fit_learners:
            self._fit_learners(report, now_s - self.started_s)
        yield from run.end_round(
            self.loop.plan,
            tally,
            started_s=self.started_s,
            collect_s=max(0.0, now_s - self.started_s - report.learning_s),
            dropped_contributions=step.dropped_contributions,
            gradients=report,
            slot_states=dict(sorted(self.states.items())),
            **self.kept(),
        )
        self._fraction_done = run.fraction_done()
        self.started_s = now_s

    def _fit_learners(self, report: GradientsReport, lasted_s: float) -> None:
        """Decide how many learners may run at once in the next round."""
        gradient_s, sampling_s = report.learners_busy * lasted_s, report.actors_busy * lasted_s
        bounds, most = self.run.bounds, self._choice.learners
        allowed = max(1, ceil(most * bounds.learners_share))
        self.loop.fit_learners(gradient_s, sampling_s, allowed)
        collecting_s = sampling_s / self.loop.plan.actors
        why = f"{gradient_s:.3g} s of gradients a round for {collecting_s:.3g} s of sampling"
        because = f" {bounds.because}" if allowed < most else ""
        self._occupancy.allow(self.loop.learners.most, f"{why}, at most {allowed}{because}")


def _is_finite(document: Document) -> bool:
    """Whether all arrays are. Platforms whose actors are not trusted have checked all the rest."""
    arrays = [value for value in document.values() if isinstance(value, np.ndarray)]
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _dropped(landed: Landed, reason: str, code: str) -> CallFailed:
    call = landed.call
    return CallFailed(
        call_id=call.id,
        call_kind=call.kind,
        round_no=call.round_no,
        slot=call.slot,
        attempt=call.attempt,
        reason=f"dropped: {reason}",
        reason_code=code,
        will_retry=False,
    )
