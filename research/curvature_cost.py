"""What it costs to know the curvature of an objective: beside the round it is measured in, and beside knowing it all.

Rounds of 16 actors × 256 Hopper steps run here on local workers. An update that such a round made is then done again,
with the measurement and without it in turn, so that its cost is a difference inside one process. The whole matrix is
taken column by column from the same products, and its eigenvalues from LAPACK: 64 × 64 only, as a network of 70
thousand parameters would need 38 GB for it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cloud.platforms.local import LocalOptions
from rig.figures import Figure, NotSetUp
from rig.rounds import round_finished
from rig.servers import ROOT
from training.calls.update import UpdateRequest
from training.engine.checkpoints import FileCheckpointStore
from training.engine.messages import Call, RoundFinished
from training.engine.ports import Control
from training.engine.reports import RoundReport
from training.engine.train import train
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl.batch import Batch
from training.rl.figures import CurvatureReport, LearningFigures, NoiseScaleReport
from training.rl.learner import LearnerState
from training.rl.measures.curvature import CurvatureSpec, measure_curvature, standardise
from training.rl.networks import Parameters
from training.rl.surfaces.surface import surface_of
from training.rl.surfaces.update_samples import UpdateSamples
from training.scaling.agent_weights import as_text
from training.scaling.boosting import Boosting
from training.scaling.chance import Chance
from training.scaling.doubling import Doubling
from training.scaling.fixed import Fixed
from training.scaling.learned import Learned
from training.scaling.noise_scale import NoiseScale
from training.scaling.plan import Bounds
from training.scaling.ramp import Ramp
from training.scaling.reward_ratio import RewardRatio
from training.scaling.schedule import ActorSchedule
from training.scaling.siren import Siren
from training.scheduling.minionsrl.model import SchedulingSpec
from training.scheduling.siren.model import SirenSpec
from training.scheduling.trainer import initial_state
from training.spec import RETURN, TrainingSpec

ACTORS, STEPS = 16, 256
_ROUNDS = 6
_REPEATS = 7


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """Shares of a round, ratios to the whole matrix and to the whole batch, and what decisions take."""
    repeats = 3 if quick else _REPEATS
    for hidden in ((64, 64), (256, 256)):
        name = " × ".join(map(str, hidden))
        rounds, call = _rounds(hidden)
        without = call.model_copy(update={"request": call.request.model_copy(update={"measures": ()})})
        with_s, without_s = _in_turn(partial(_execute, call), partial(_execute, without), repeats)
        round_s = statistics.median(report.total_s for report in rounds[1:])
        detector_s = max(0.0, with_s - without_s)
        curved = rounds[-1].figures_of(LearningFigures).curvature
        yield Figure(
            f"{name}: detector's share of a round",
            detector_s / round_s,
            "",
            at_most=0.05,
            data={
                "round_s": round_s,
                "detector_s": detector_s,
                "update_s": without_s,
                "curvature": curved.model_dump() if curved else None,
            },
        )
        yield from _beside_pyhessian(name, call)
        yield from _against_more(name, call, whole=hidden == (64, 64) and not quick, repeats=repeats)
    boosted = (Boosting(), Boosting(rule="released"))
    policies: tuple[Any, ...] = (
        Fixed(),
        Ramp(),
        *boosted,
        NoiseScale(),
        Doubling(),
        ActorSchedule(),
        Chance(),
    )
    for policy in (*policies, RewardRatio(), _a_scheduler(), _an_agent()):
        yield _decision(policy)


def _rounds(hidden: tuple[int, ...]) -> tuple[list[RoundReport], Call]:
    """Reports of a few rounds, and the last update's call."""
    spec = TrainingSpec.model_validate(
        {
            "environment": {"id": "Hopper-v5"},
            "algorithm": {"kind": "ppo", "normalise_observations": True, "normalise_rewards": True},
            "network": {"kind": "mlp", "hidden": hidden},
            "scaling": {
                "kind": "boosting",
                "actors_min": ACTORS,
                "actors_max": ACTORS,
                "actors_first": ACTORS,
            },
            "rollout": {"steps_per_call": STEPS},
            "stop": {"env_steps": None, "rounds": _ROUNDS},
            "evaluation": {"every_rounds": 1000, "episodes": 1},
        }
    )
    platform = _Noting(LocalOptions().open())
    with tempfile.TemporaryDirectory(prefix="starling-bench-") as folder:
        try:
            events = train(
                spec, platform=platform, checkpoints=FileCheckpointStore(Path(folder)), control=Control
            )
            reports = [event.report for event in events if isinstance(event, RoundFinished)]
        finally:
            platform.close()
    assert platform.update is not None
    return reports, platform.update


class _Noting:
    """A platform that remembers the last update's call."""

    def __init__(self, platform: Any) -> None:
        self._platform = platform
        self.update: Call | None = None

    def submit(self, call: Call) -> None:
        if call.kind == "update":
            self.update = call
        self._platform.submit(call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._platform, name)


def _execute(call: Call) -> None:
    execute(call, None, WarmCache())


def _request_of(call: Call) -> UpdateRequest:
    assert isinstance(call.request, UpdateRequest)
    return call.request


def _in_turn(one: Callable[[], Any], other: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Medians of processor time, one after the other."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for act, taken in zip((one, other), times, strict=True):
            began_s = time.process_time()
            act()
            taken.append(time.process_time() - began_s)
    return statistics.median(times[0]), statistics.median(times[1])


def _against_more(name: str, call: Call, *, whole: bool, repeats: int) -> Iterator[Figure]:
    """The bounded measurement beside the same on the whole batch, and beside all eigenvalues."""
    state = LearnerState.decode(call.inputs[0])
    batch = Batch.of(call.inputs[1:], range(state.version, state.version + 1), state.spaces)
    learned = _request_of(call).algorithm.learn(state, batch, _request_of(call).network, 0.0, call.seed)
    bounded = CurvatureSpec()
    all_of_it = bounded.model_copy(update={"samples": learned.update_samples.size})

    def of(spec: CurvatureSpec) -> CurvatureReport:
        return measure_curvature(
            spec,
            _request_of(call).network,
            state.spaces,
            learned.state.parameters,
            learned.update_samples,
            clip=_request_of(call).algorithm.surrogate_clip,
            weights=_request_of(call).algorithm.loss_weights,
            seed=call.seed,
        )

    full_s, subset_s = _in_turn(lambda: of(all_of_it), lambda: of(bounded), repeats)
    yield Figure(
        f"{name}: curvature on the whole batch over that on 256 samples",
        full_s / subset_s,
        "×",
        data={
            "subset_s": subset_s,
            "full_s": full_s,
            "subset": of(bounded).ratio,
            "full": of(all_of_it).ratio,
        },
    )
    if whole:
        exact_s, largest, smallest = _exact(call, state, learned.state, learned.update_samples)
        yield Figure(
            f"{name}: all eigenvalues over both ends, whole batch",
            exact_s / full_s,
            "×",
            data={"exact_s": exact_s, "ratio": -largest / smallest, "by_lanczos": of(all_of_it).ratio},
        )


def _beside_pyhessian(name: str, call: Call) -> Iterator[Figure]:
    """Both ends beside PyHessian's Ritz ends after 100 products of double precision, on the same 256 samples."""
    state = LearnerState.decode(call.inputs[0])
    batch = Batch.of(call.inputs[1:], range(state.version, state.version + 1), state.spaces)
    learned = _request_of(call).algorithm.learn(state, batch, _request_of(call).network, 0.0, call.seed)
    clip = _request_of(call).algorithm.surrogate_clip
    assert clip is not None
    few = replace(learned.update_samples.select(slice(0, CurvatureSpec().samples)), columns=1)
    ours = measure_curvature(
        CurvatureSpec(),
        _request_of(call).network,
        state.spaces,
        learned.state.parameters,
        few,
        clip=clip,
        weights=_request_of(call).algorithm.loss_weights,
        seed=call.seed,
    )
    theirs = ritz_ends(learned.state.parameters, standardise(few), clip)
    for end in ("largest", "smallest"):
        here = getattr(ours, end)
        yield Figure(
            f"{name}: {end} eigenvalue beside PyHessian's",
            abs(here / theirs[end] - 1),
            "off",
            at_most=0.01,
            data={"ours": here, "theirs": theirs[end], "products": ours.products},
        )


def ritz_ends(parameters: Parameters, update_samples: UpdateSamples, clip: float) -> dict[str, float]:
    """By PyHessian, in the peers' environment."""
    missing = NotSetUp("PyHessian is not installed: run `make bench-setup`")
    python = ROOT / ".venv-bench" / "bin" / "python"
    if not python.exists():
        raise missing
    layers = sorted(name for name in parameters if name.startswith("policy.") and name.endswith(".weight"))
    given: dict[str, Any] = {f"weight_{i}": parameters[f"policy.{i}.weight"] for i in range(len(layers))}
    given |= {f"bias_{i}": parameters[f"policy.{i}.bias"] for i in range(len(layers))}
    with tempfile.TemporaryDirectory(prefix="starling-bench-") as folder:
        path = Path(folder, "policy.npz")
        np.savez(
            path,
            **given,
            log_std=parameters["policy.log_std"],
            observations=update_samples.observations,
            actions=update_samples.actions,
            log_probs=update_samples.log_probs,
            advantages=update_samples.advantages,
            clip=np.float64(clip),
        )
        command = [str(python), "-W", "ignore", "-m", "rig.ritz", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    if "No module named 'pyhessian'" in done.stderr:
        raise missing
    if done.returncode != 0:
        raise RuntimeError(f"PyHessian ended with {done.returncode}:\n{done.stderr[-3000:]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _exact(
    call: Call, state: LearnerState, after: LearnerState, update_samples: UpdateSamples
) -> tuple[float, float, float]:
    """Processor time of the matrix and its eigenvalues, on every eighth sample whose time is then counted eight times
    over: products are all but all of it, and take as long as there are samples.
    """
    eighth = standardise(update_samples)
    eighth = replace(eighth.select(np.arange(0, update_samples.size, 8)), columns=1)
    surface = surface_of(
        _request_of(call).network,
        state.spaces,
        after.parameters,
        eighth,
        objective="surrogate",
        clip=_request_of(call).algorithm.surrogate_clip,
    )
    began_s = time.process_time()
    matrix = np.stack([surface.product(unit) for unit in np.eye(surface.size)])
    products_s = time.process_time() - began_s
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    took_s = time.process_time() - began_s - products_s
    return 8 * products_s + took_s, float(values[-1]), float(values[0])


def _a_scheduler() -> Learned:
    """MinionsRL's, untrained: what it decides does not change how long that takes."""
    spec = SchedulingSpec(workload=TrainingSpec(environment={"id": "CartPole-v1"}), target_return=100.0)
    return spec.policy(as_text(initial_state(spec).actor_weights(spec.network)), explore=True)


def _an_agent() -> Siren:
    """Siren's, untrained."""
    spec = SirenSpec(target_loss=0.1)
    return spec.policy(as_text(initial_state(spec).actor_weights(spec.network)), explore=True)


def _decision(policy: Any) -> Figure:
    history = [_report(i + 1) for i in range(64)]
    best_s = float("inf")
    for _ in range(200):
        began_s = time.process_time()
        policy.decide(history, Bounds(), 3, RETURN)
        best_s = min(best_s, time.process_time() - began_s)
    rule = getattr(policy, "rule", "")
    return Figure(f"a decision of {policy.kind} {rule}".strip(), best_s * 1000, "ms", at_most=1.0)


def _report(round_no: int) -> RoundReport:
    curved = CurvatureReport(largest=2.0, smallest=-1.0, ratio=1.0 + round_no % 7, products=9, samples=256)
    report: RoundReport = round_finished(round_no).report
    measured = {"curvature": curved, "noise_scale": NoiseScaleReport(scale=100.0 + round_no, slices=8)}
    return report.model_copy(update={"figures": report.figures.model_copy(update=measured)})
