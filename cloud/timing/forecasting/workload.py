"""A job's calls before it runs: their work and their bytes, by arithmetic from the spec."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from cloud.money.billing.work import OF_USAGE, CallRecord
from training.calls import KINDS
from training.calls.kind import PlannedCall, Sizes
from training.engine.deadlines import Deadlines
from training.engine.reports import Usage
from training.loops.attempts import place_of
from training.rl.message_sizes import sizes_of
from training.rl.spaces import Spaces
from training.spec import TrainingSpec
from training.tasks.kinds import task_of
from training.tasks.training import Training

_NO_SPACES = Spaces((1,), ())
_NO_SIZES = Sizes(0, 0, 0, 0, 0, 0, 0, 0, False)


def spaces_of(training: Training) -> tuple[Spaces, bool]:
    """Return the environment's spaces without building it, and whether they are known or guessed. A training without
    an environment has none to guess.
    """
    if not isinstance(training, TrainingSpec):
        return _NO_SPACES, True
    return training.expected_spaces


class Workload:
    """Makes records of calls that were never made. They are cached, because draws differ in chance only.

    `fewer`: each trajectory represents this many, of a fleet that is as many times larger. `shorter`: an epoch has so
    many times fewer calls.
    """

    def __init__(self, training: Training, *, fewer: int = 1, shorter: int = 1) -> None:
        self.training = training
        self.shorter = shorter
        self.task = task_of(training)
        spaces, self.spaces_known = spaces_of(training)
        self.sizes = sizes_of(training, spaces) if isinstance(training, TrainingSpec) else _NO_SIZES
        self.steps_a_call = training.progress_a_call
        self._planned = PlannedCall(training, self.sizes, fewer=fewer)
        self._deadlines = Deadlines(training.longest_call_s)
        self._alike: dict[tuple[str | int, ...], CallRecord] = {}
        self._named: dict[tuple[tuple[str | int, ...], str], CallRecord] = {}

    def call(
        self,
        kind: str,
        name: str,
        *,
        contributions: int = 0,
        gradients: int = 0,
        policies: int = 0,
        trials: int = 0,
        steps: int = 0,
        share: int = 1,
        sharing: int = 0,
    ) -> CallRecord:
        """Return a call of any kind, to which this much of the job falls. `share`: the most trials of such a call."""
        key = kind, contributions, gradients, policies, trials, steps, share, sharing
        call = self._named.get((key, name))
        if call is not None:
            return call
        like = self._alike.get(key)
        if like is None:
            planned = replace(
                self._planned,
                contributions=contributions,
                gradients=gradients,
                policies=policies,
                trials=trials,
                steps=steps,
                sharing=sharing,
            )
            like = self._alike[key] = self._first(kind, KINDS[kind].expected_work(planned), share)
        call = self._named[key, name] = replace(like, id=f"{name}-a1", name=name)
        return call

    @property
    def calls_an_epoch(self) -> int:
        return ceil(self.task.calls_an_epoch / self.shorter)

    def sampling(self, name: str) -> CallRecord:
        return self.call(self.task.sampling, name)

    def update(self, name: str, contributions: int) -> CallRecord:
        """Return an update by this many trajectories."""
        return self.call(self.task.learning, name, contributions=contributions)

    def evaluation(self, actors: int, trial_steps: float) -> list[CallRecord]:
        """Return the calls of one evaluation after a round of this many actors, with trials of this mean length."""
        works = []
        judgings = self.task.judge(0, actors)
        for position, judging in enumerate(judgings):
            like = KINDS[judging.request.kind]
            played = like.trials(judging.request) or 0
            steps = max(1, round(played * trial_steps))
            name = f"evaluate{position}"
            works.append(
                self.call(
                    like.name,
                    name,
                    trials=played,
                    steps=steps,
                    share=judging.share,
                    sharing=len(judgings),
                )
            )
        return works

    def _first(self, kind: str, work: Usage, share: int) -> CallRecord:
        """Return a call with this work, before any call was measured."""
        like = KINDS[kind]
        return CallRecord(
            id="",
            name="",
            kind=kind,
            where=place_of(self.training, kind),
            stepped=self.training.subject if work.steps else "",
            # The network that decides on a round comes with the call that ends it.
            decision_macs=self.training.scaling.decision_macs if like.makes_version else 0,
            memory_mb=self.training.memory_mb,
            copies=self.training.copies_a_call if like.role == "sampling" else 1,
            deadline_s=self._deadlines.for_kind(kind, share if like.grows_with_trials else 1),
            **{name: getattr(work, name) for name in OF_USAGE},
            trials=work.trials,
        )
