"""Trains the scheduler of a MinionsRL arm, as a run of its own: rehearsals on recorded rounds, then real episodes.

The scheduler is stored beside the run's rows (`SEED.scheduler`) after every episode, so that a killed run goes on from
its last. What the real episodes cost is reported beside every comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from training.base_model import FrozenModel
from training.engine.checkpoints import Progress, read_checkpoint
from training.engine.messages import RoundFinished
from training.engine.reports import RoundReport
from training.rl.learner import LearnerState
from training.scaling.agent_weights import as_text
from training.scaling.learned import Learned
from training.scheduling.minionsrl.decisions import reached
from training.scheduling.minionsrl.model import SchedulingSpec
from training.scheduling.trainer import EpisodeFinished, train_scheduler
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD

# Between the seeds of one task's schedulers.
_VARIANT = 100_000


class RehearsedTraining(FrozenModel):
    """`recorded` are the arms whose rounds are rehearsed with.

    `begin_with` is an arm whose scheduler is trained on, of the environment `begin_in` if that is another one.
    `readings` is how many in a row must be at the target. `variant` tells schedulers of one task apart: each has chance
    of its own. `binding`: the job's budget ends rehearsals as well as real episodes. The first runs had one that was
    never spent.
    `printed` is the paper's own: charged in seconds, with its states and rewards as the plain numbers they are there.
    """

    # Hashes of the recipes of stored runs contain this word, and the fields below.
    kind: Literal["schooling"] = "schooling"
    recorded: tuple[str, ...] = ()
    begin_with: str | None = None
    begin_in: str | None = None
    actors_max: int = Field(32, ge=2, le=1024)
    rounds: int = Field(20, ge=2)
    episodes: int = Field(5, ge=1)
    rehearsals: int = Field(500, ge=0)
    objective: Literal["time", "cost", "printed"] = "cost"
    # Left out where they are as they were when the first runs were made: their hashes contain all that is written.
    readings: int = Field(1, ge=1, exclude_if=lambda value: value == 1)
    variant: int = Field(0, ge=0, exclude_if=lambda value: value == 0)
    binding: bool = Field(False, exclude_if=lambda value: value is False)

    def quick(self) -> RehearsedTraining:
        return self.model_copy(update={"rounds": 3, "episodes": 1, "rehearsals": 2})

    def spec(self, job: JobSpec, target: float) -> SchedulingSpec:
        """For trainings like this one that are to reach the target with their actors' episodes."""
        fields = self.model_dump(exclude={"kind", "recorded", "begin_with", "begin_in", "variant", "binding"})
        if self.objective == "printed":
            fields |= {"objective": "time", "state": "printed", "reward": "printed"}
        seed = job.training.seed + self.variant * _VARIANT
        return SchedulingSpec(workload=job.training, target_return=target, seed=seed, **fields)


def rounds_of(checkpoint: Path, job: JobSpec) -> tuple[RoundReport, ...]:
    """What a training reported of its rounds, the last ones it kept."""
    return Progress.decode(read_checkpoint(checkpoint), job.training).history


def policy_from(scheduler: bytes, spec: SchedulingSpec) -> Learned:
    """The scaling policy that decides by a stored scheduler."""
    state = LearnerState.decode(scheduler)
    return spec.policy(as_text(state.actor_weights(spec.network)), explore=False)


def episodes(
    job: JobSpec,
    spec: SchedulingSpec,
    recorded: Sequence[Sequence[RoundReport]],
    *,
    binding: bool = False,
    begin_with: bytes | None,
    scheduler: Path,
    done: int,
    begun: Callable[[Headless], None],
) -> Iterator[dict[str, Any]]:
    """A row for each episode after the first `done`. `begun` gets each real one, so that it can be stopped."""

    def play(policy: Learned, seed: int) -> list[RoundReport]:
        document = job.model_dump(mode="json")
        document["training"] |= {"scaling": policy.model_dump(mode="json"), "seed": seed % 2**31}
        document["training"]["stop"] |= {"rounds": spec.rounds}
        # A scheduler sees its actors' returns and nothing else.
        document["training"]["evaluation"] |= {"every_rounds": spec.rounds + 1}
        headless = Headless(JobSpec.model_validate(document))
        begun(headless)
        rounds: list[RoundReport] = []
        for event in headless.events():
            if isinstance(event, RoundFinished):
                rounds.append(event.report)
                if reached(rounds, spec.target_return, spec.readings):
                    headless.stop()
        return rounds

    resume = None
    if done:
        state = scheduler.read_bytes()
        resume = EpisodeFinished(done, "rehearsal", 0, 0.0, 0, None, False, 0.0, (), state)
    budget = int(job.budget_usd * PICODOLLARS_PER_USD) if binding else None
    for step in train_scheduler(
        spec, play, recorded=recorded, budget_picodollars=budget, begin_with=begin_with, resume=resume
    ):
        temporary = scheduler.with_suffix(".scheduler-new")
        temporary.write_bytes(step.state)
        temporary.replace(scheduler)
        yield {
            "kind": "episode",
            "round": step.number,
            "played": step.kind,
            "rounds": step.rounds,
            "actors": list(step.actors),
            "platform_s": step.platform_s,
            # A rehearsal costs nothing: the rounds it is put together from are paid already.
            "episode_usd": step.cost_picodollars / PICODOLLARS_PER_USD if step.kind == "real" else 0.0,
            "best_return": step.best_return,
            "reached": step.reached,
            "score": step.score,
        }
