"""The model card: what a policy is, its training, its score, its cost, and how to use it.

It rounds nothing up and leaves nothing out: it says which facts are unknown and which money is simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from training.artifacts.markdown import literal
from training.engine.checkpoints import Progress
from training.engine.messages import Evaluated
from training.engine.seeds import derive
from training.rl.algorithms import AnyAlgorithm
from training.rl.environments.catalogue import ENTRIES
from training.rl.figures import EpisodeFigures
from training.rl.networks import AnyNetwork
from training.rl.policies.loader import ATARI, POLICY, SCRIPT, is_atari
from training.rl.policies.trained import TrainedPolicy
from training.spec import TrainingSpec

_SEEDS_SHOWN = 20


@dataclass(frozen=True)
class EvaluationScore:
    """The result of an evaluation after round `round_no`: episodes with the deterministic policy, one seed each.

    `std` is None where only the mean is known.
    """

    round_no: int
    mean: float
    std: float | None
    seeds: tuple[int, ...]

    @staticmethod
    def from_evaluation(evaluation: Evaluated, spec: TrainingSpec) -> EvaluationScore:
        """Return the result of the run's own evaluation. If calls failed, returns and seeds do not match: `seeds` is
        empty.
        """
        seeds, figures = evaluation_seeds(spec, evaluation.round_no), evaluation.figures_of(EpisodeFigures)
        known = seeds if len(figures.episode_returns) == len(seeds) else ()
        return EvaluationScore(evaluation.round_no, figures.return_mean, figures.return_std, known)

    @staticmethod
    def from_progress(progress: Progress, spec: TrainingSpec) -> EvaluationScore | None:
        """Return the last evaluation that the checkpoint stores: only its mean."""
        if not progress.evaluation_means:
            return None
        seeds = evaluation_seeds(spec, progress.evaluated_round)
        return EvaluationScore(progress.evaluated_round, progress.evaluation_means[-1], None, seeds)

    @staticmethod
    def from_returns(returns: Sequence[float], seeds: Sequence[int], round_no: int) -> EvaluationScore:
        """Return the result of episodes that were played after the training."""
        return EvaluationScore(round_no, float(np.mean(returns)), float(np.std(returns)), tuple(seeds))


def evaluation_seeds(spec: TrainingSpec, round_no: int) -> tuple[int, ...]:
    """Return the seeds of a run's evaluation after that round, as `training.loops.evaluation` derives them."""
    episodes = range(spec.evaluation.episodes)
    return tuple(derive(spec.seed, "evaluation", round_no, episode) % 2**31 for episode in episodes)


def model_card(
    trained: TrainedPolicy, *, name: str, judged: EvaluationScore | None, cost: str, simulated: bool | None
) -> str:
    """Return the card as Markdown. `cost` is an amount in words; `simulated` is None where the platform is unknown."""
    spec, progress = trained.spec, trained.progress
    entry = ENTRIES.get(spec.environment.id)
    rows = [
        ("Environment", spec.environment.id + (f" ({entry.title})" if entry is not None else "")),
        ("Sees, does", _spaces(trained)),
        ("Algorithm", _algorithm(spec.algorithm)),
        ("Network", _network(spec.network)),
        ("Observations", _normaliser(trained)),
        ("Policy", f"version {trained.learner.version:,}, after round {progress.round_no:,}"),
        ("Trained for", f"{progress.total_progress:,} environment steps"),
        ("Training seed", str(spec.seed)),
        ("Cost of the training", _cost(cost, simulated)),
        ("Trained with", _versions()),
    ]
    table = "\n".join(f"| {what} | {fact} |" for what, fact in rows)
    return f"""# {literal(name)}

A policy trained with Starling, as an ONNX model that needs nothing of Starling to run.

| | |
|---|---|
{table}

## How good it is

{_return(judged, progress)}{_reference(spec)}

## How to use it

{_use(trained)}
"""


def _spaces(trained: TrainedPolicy) -> str:
    spaces = trained.learner.spaces
    seen = (
        f"pictures of {' × '.join(map(str, spaces.observation_shape))} bytes, channels first"
        if spaces.pictures
        else f"{spaces.observation_size} numbers"
    )
    if not spaces.discrete:
        return f"{seen}; {len(spaces.action_low)} continuous actions, clipped to their bounds"
    if len(spaces.action_counts) == 1:
        return f"{seen}; one of {spaces.action_counts[0]} actions"
    return f"{seen}; {len(spaces.action_counts)} actions with {', '.join(map(str, spaces.action_counts))} choices"


def _algorithm(algorithm: AnyAlgorithm) -> str:
    fields = algorithm.model_dump(mode="json", exclude={"kind"})
    shown = [f"{key} {value}" for key, value in fields.items() if not isinstance(value, dict)]
    return f"{algorithm.kind.upper()} ({', '.join(shown)})"


def _network(network: AnyNetwork) -> str:
    return f"{network.in_words()}, {network.activation}{', layers shared with the value' if network.shared else ''}"


def _normaliser(trained: TrainedPolicy) -> str:
    if trained.learner.spaces.pictures:
        return "divided by 255 inside the model"
    if trained.learner.observation_moments is None:
        return "used as they are"
    return "normalised and clipped to ±10 inside the model, by the statistics of this version"


def _cost(cost: str, simulated: bool | None) -> str:
    if simulated:
        return f"{cost}, **simulated**: priced by a model of a cloud, no one was billed"
    if simulated is None:
        return f"{cost}; whether its platform was simulated is not stored in the checkpoint"
    return cost


def _versions() -> str:
    versions = []
    for name in ("gymnasium", "mujoco", "ale-py", "numpy"):
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"{', '.join(versions)} (those of the export)"


def _return(judged: EvaluationScore | None, progress: Progress) -> str:
    if judged is None:
        return "It was not evaluated, so its score is unknown."
    score = f"**{judged.mean:,.1f}**"
    if judged.std is not None:
        score = f"**{judged.mean:,.1f} ± {judged.std:,.1f}** (standard deviation between episodes)"
    note = "" if judged.std is not None else " The spread is not stored in the checkpoint."
    if judged.round_no != progress.round_no:
        note += f" It was measured on the policy of round {judged.round_no:,}, the last that was evaluated."
    if not judged.seeds:
        return f"Mean return {score}.{note}"
    shown = ", ".join(map(str, judged.seeds[:_SEEDS_SHOWN]))
    more = f" and {len(judged.seeds) - _SEEDS_SHOWN:,} more" if len(judged.seeds) > _SEEDS_SHOWN else ""
    return (
        f"Mean return {score} over "
        f"{len(judged.seeds):,} whole episodes of the deterministic policy, on seeds never used for training: "
        f"{shown}{more}.{note} One training run, one training seed: other seeds may learn better or worse."
    )


def _reference(spec: TrainingSpec) -> str:
    entry = ENTRIES.get(spec.environment.id)
    if entry is None or entry.reference_score is None:
        return ""
    return f"\n\nFor comparison: {entry.reference_score:,.0f} ({entry.reference})."


def _use(trained: TrainedPolicy) -> str:
    needs = f"onnxruntime numpy {_gymnasium(trained)}"
    text = f"""    pip install {needs}
    python {SCRIPT} 10

plays ten episodes on seeds 0 to 9 and prints their mean return. From your own code: give `{POLICY}` the observations
as `observation` ({"uint8" if trained.learner.spaces.pictures else "float32"}, the batch first) and read `action`."""
    if not is_atari(trained):
        return text
    return f"""{text}

The pictures must be made as in training, by `{ATARI}`: 4 frames an action, the maximum of the last two, 84 × 84 grey
by averaging areas, {trained.spec.environment.frame_stack} stacked, channels first. That is Starling's preprocessing,
not Gymnasium's; with other pictures the policy plays worse."""


def _gymnasium(trained: TrainedPolicy) -> str:
    entry = ENTRIES.get(trained.spec.environment.id)
    if is_atari(trained):
        return "gymnasium ale-py"
    return '"gymnasium[mujoco]"' if entry is not None and entry.family == "MuJoCo" else "gymnasium"
