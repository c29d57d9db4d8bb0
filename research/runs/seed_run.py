"""One run of an experiment in this process, from wherever it was left to its final evaluation."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cloud.fingerprint import fingerprint
from cloud.workers.processes import bound_to_this_process
from research.experiment import Cell, Experiment, recipe_hash
from research.runs.dependencies import DependencyMissing, with_dependencies
from research.runs.run_file import Row, RunFile
from research.runs.study_run import StudyRun, reinforcement_of
from training.calls.evaluate import EvaluateRequest
from training.calls.rollout import RolloutRequest
from training.engine.checkpoints import CheckpointError, Progress, read_checkpoint
from training.engine.codec import decode
from training.engine.messages import OWN_ENDS, Call, Evaluated, RoundFinished, Stopped
from training.engine.reports import RoundReport
from training.engine.seeds import derive
from training.functions.body import WarmCache
from training.functions.evaluate import evaluate
from training.functions.rollout import rollout
from training.rl.environments.making import spaces_of
from training.rl.figures import EpisodeFigures, LearningFigures
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD

# A budget that binds is an end that an experiment asks about.
_WHOLE_ENDS = OWN_ENDS | {"budget"}
_DRAWN_STEPS = 512


class RunFailed(RuntimeError):
    """The run cannot go on; the message is one sentence for people."""


class SeedRun:
    """One run. `stop` ends it at the next opportunity with a checkpoint, to be gone on from later."""

    def __init__(
        self,
        experiment: Experiment,
        cell: Cell,
        file: RunFile,
        *,
        root: Path,
        folder: Path | None = None,
        quick: bool = False,
    ) -> None:
        """`folder` is the experiment's own; runs that this one needs are looked for there."""
        self._experiment = experiment
        self._cell = cell
        self._file = file
        self._root = root
        self._folder = folder if folder is not None else file.path.parents[2]
        self._quick = quick
        self._spec = experiment.spec(cell, quick=quick)
        self._stopping: Callable[[], None] | None = None
        self._stop_requested = False

    def stop(self) -> None:
        self._stop_requested = True
        if self._stopping is not None:
            self._stopping()

    def run(self) -> bool:
        """Continue to the end. True if the run is complete; raises RunLocked or RunFailed."""
        with self._file.locked():
            if not self._file.complete:
                arm = self._experiment.arm(self._cell.arm)
                try:
                    self._spec = with_dependencies(
                        self._experiment, self._folder, self._cell, self._spec, quick=self._quick
                    )
                    if arm.study is not None:
                        self._run_study()
                    elif arm.peer is None:
                        self._train()
                    else:
                        self._run_peer(arm.peer)
                except DependencyMissing as error:
                    raise RunFailed(str(error)) from None
            return self._file.complete

    def _begin(self, made_with: dict[str, str], **more: Any) -> None:
        self._file.append(
            {
                "kind": "begin",
                "at": time.time(),
                "recipe": recipe_hash(self._spec, self._experiment.arm(self._cell.arm).study),
                "evidence": not self._quick,
                "made_with": made_with,
                "spec": self._spec.model_dump(mode="json"),
                **more,
            }
        )

    def _run_study(self) -> None:
        study = StudyRun(self._experiment, self._cell, self._file, self._spec, quick=self._quick)
        self._stopping = study.stop
        if self._stop_requested:
            study.stop()
        if not self._file.rows():
            self._begin(fingerprint(self._root))
        study.run(self._folder)

    def _train(self) -> None:
        # A record of work has no holes and nothing twice: such runs take minutes, and begin again when they are broken.
        work = self._file.work_path if self._experiment.pricing_targets else None
        if work is not None:
            self._file.discard()
        resume = self._resumable()
        kept = self._file.truncate_after(resume[1] if resume else -1) if self._file.rows() else []
        if not kept:
            self._begin(fingerprint(self._root))
            if self._experiment.untrained:
                seeds = self._experiment.evaluation_seeds(self._cell, quick=self._quick)
                returns, lengths = untrained_returns(self._spec, seeds)
                self._file.append({"kind": "untrained", "round": 0, "returns": returns, "lengths": lengths})
        else:
            self._file.append({"kind": "resumed", "at": time.time(), "round": resume[1] if resume else 0})
        wall_before = next((row["wall_s"] for row in reversed(kept) if "wall_s" in row), 0.0)
        cost_before = next((row["cost_usd"] for row in reversed(kept) if "cost_usd" in row), 0.0)
        headless = Headless(
            self._spec,
            checkpoints=self._file.checkpoints,
            resume=resume[0] if resume else None,
            work=work,
        )
        self._stopping = headless.stop
        if self._stop_requested:
            headless.stop()
        began_s, wall_s = time.monotonic(), wall_before
        stopped: Stopped | None = None
        for event in headless.events():
            wall_s = wall_before + time.monotonic() - began_s
            if isinstance(event, RoundFinished):
                self._file.append(_round_row(event.report, wall_s, cost_before))
            elif isinstance(event, Evaluated):
                self._file.append(_evaluation_row(event, wall_s))
            elif isinstance(event, Stopped):
                stopped = event
        if stopped is not None:
            # Rented machines are on the bill when they are given back.
            cost_usd = cost_before + headless.spent_picodollars / PICODOLLARS_PER_USD
            self._finish(stopped, wall_s, cost_usd)

    def _finish(self, event: Stopped, wall_s: float, cost_usd: float) -> None:
        if event.reason_code not in _WHOLE_ENDS or not event.rounds:
            if event.reason_code in ("cancelled", "paused"):
                return
            raise RunFailed(f"{self._spec.name}: {event.reason}")
        returns, lengths = held_out_returns(
            self._spec,
            self._last_checkpoint(),
            self._experiment.evaluation_seeds(self._cell, quick=self._quick),
        )
        self._file.append({"kind": "final", "round": event.rounds, "returns": returns, "lengths": lengths})
        self._file.append(
            {
                "kind": "end",
                "round": event.rounds,
                "env_steps": event.progress,
                "reason": event.reason,
                "wall_s": wall_s,
                "cost_usd": cost_usd,
            }
        )

    def _resumable(self) -> tuple[Path, int] | None:
        """The newest checkpoint that is whole, and its round. RunFailed if the rows there are of another recipe."""
        rows = self._file.rows()
        if not rows:
            return None
        if rows[0]["recipe"] != recipe_hash(self._spec, self._experiment.arm(self._cell.arm).study):
            raise RunFailed(
                f"{self._file.path} was begun with another recipe; move it away before running the new one."
            )
        for path in reversed(self._checkpoint_paths()):
            try:
                progress = Progress.decode(read_checkpoint(path), self._spec.training)
            except CheckpointError:
                continue
            return path, progress.round_no
        return None

    def _checkpoint_paths(self) -> list[Path]:
        return sorted(self._file.checkpoints.glob("round-*.checkpoint"))

    def _last_checkpoint(self) -> Path:
        return self._checkpoint_paths()[-1]

    def _run_peer(self, peer: str) -> None:
        """Run the peer's program, whose standard output is our rows. It cannot go on from the middle."""
        python = self._root / ".venv-bench" / "bin" / "python"
        if not python.exists():
            raise RunFailed(f"The arm {self._cell.arm!r} needs .venv-bench: run `make bench-setup` first.")
        self._file.path.unlink(missing_ok=True)
        document = {
            "training": self._spec.training.model_dump(mode="json"),
            "evaluation_seeds": self._experiment.evaluation_seeds(self._cell, quick=self._quick),
        }
        program = Path(__file__).parents[1] / "peers" / f"{peer}.py"
        command = bound_to_this_process([str(python), "-I", str(program), json.dumps(document)])
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=None)
        self._stopping = process.terminate
        if self._stop_requested:
            process.terminate()
        assert process.stdout is not None
        end: Row | None = None
        for line in process.stdout:
            row: Row = json.loads(line)
            if row["kind"] == "begin":
                ours = fingerprint(self._root)
                self._begin({**ours, **row["made_with"]}, peer=peer)
            elif row["kind"] == "end":
                end = row
            else:
                self._file.append(row)
        if process.wait() == 0 and end is not None:
            self._file.append(end)
        elif not self._stop_requested:
            raise RunFailed(
                f"{self._spec.name}: the peer's program ended with exit code {process.returncode}."
            )


def _round_row(report: RoundReport, wall_s: float, cost_before: float) -> Row:
    figures = report.figures_of(LearningFigures)
    spent = report.spend.spent_picodollars if report.spend is not None else report.cost_picodollars
    return {
        "kind": "round",
        "round": report.round_no,
        "env_steps": report.total_progress,
        "episodes": figures.episodes,
        "episode_return_mean": figures.episode_return_mean,
        "actors": report.actors,
        "why": report.plan_reason,
        "ratio": figures.curvature.ratio if figures.curvature is not None else None,
        "noise_scale": figures.noise_scale.scale if figures.noise_scale is not None else None,
        "policy_shift": figures.policy_shift,
        "collect_s": report.collect_s,
        "update_s": report.update_s,
        "total_s": report.total_s,
        "at_s": report.started_s + report.total_s,
        "wall_s": wall_s,
        "cost_usd": cost_before + spent / PICODOLLARS_PER_USD,
        "staleness_mean": report.staleness_mean,
        "dropped": report.dropped_contributions,
        "minibatches": report.learner_usage.minibatches,
        "failed_calls": report.failed_calls,
        "update": figures.update.model_dump(),
        **({} if report.gradients is None else {"gradients": report.gradients.model_dump(mode="json")}),
    }


def _evaluation_row(event: Evaluated, wall_s: float) -> Row:
    figures = event.figures_of(EpisodeFigures)
    return {
        "kind": "evaluation",
        "round": event.round_no,
        "env_steps": event.total_progress,
        "returns": list(figures.episode_returns),
        "return_mean": figures.return_mean,
        "at_s": event.at_s,
        "wall_s": wall_s,
    }


def held_out_returns(spec: JobSpec, checkpoint: Path, seeds: list[int]) -> tuple[list[float], list[int]]:
    """Whole episodes of the policy in `checkpoint`: deterministic, normaliser frozen, one episode a seed."""
    progress = Progress.decode(read_checkpoint(checkpoint), spec.training)
    return _returns_of(spec, progress.weights, progress.round_no, seeds)


def untrained_returns(spec: JobSpec, seeds: list[int]) -> tuple[list[float], list[int]]:
    """The same of the policy before its first update."""
    return _returns_of(spec, _untrained_weights(spec), 0, seeds)


def drawn_returns(spec: JobSpec, episodes: int) -> list[float]:
    """The first so many training episodes of the policy before its first update: its actions are drawn."""
    training, weights, cache = reinforcement_of(spec), _untrained_weights(spec), WarmCache()
    request = RolloutRequest(
        environment=training.environment,
        environments=1,
        steps=_DRAWN_STEPS,
        slot=0,
        discount=training.algorithm.discount,
    )
    returns: list[float] = []
    state: bytes | None = None
    number = 0
    while len(returns) < episodes:
        number += 1
        call = Call(
            id=f"drawn-{number}",
            request=request,
            where="actor",
            round_no=0,
            seed=derive(training.seed, "drawn", number),
            deadline_s=training.rollout.deadline_s,
            memory_mb=training.rollout.memory_mb,
            slot_state=state,
        )
        result = rollout(call, request, weights, cache)
        state = result.slot_state
        returns += [float(value) for value in decode(result.payload)["episode_returns"]]
    return returns[:episodes]


def _untrained_weights(spec: JobSpec) -> bytes:
    training = reinforcement_of(spec)
    state = training.algorithm.initial_state(
        training.network, spaces_of(training.environment), derive(training.seed, "network")
    )
    return state.actor_weights(training.network)


def _returns_of(
    spec: JobSpec, weights: bytes, round_no: int, seeds: list[int]
) -> tuple[list[float], list[int]]:
    training = reinforcement_of(spec)
    request = EvaluateRequest(environment=training.environment, episode_seeds=tuple(seeds))
    call = Call(
        id="final",
        request=request,
        where="actor",
        round_no=round_no,
        seed=0,
        deadline_s=training.rollout.deadline_s,
        memory_mb=training.rollout.memory_mb,
    )
    document = decode(evaluate(call, request, weights, WarmCache()).payload)
    return [float(one) for one in document["returns"]], [int(length) for length in document["lengths"]]
