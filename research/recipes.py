"""What Nitro's and MinionsRL's experiments train: the first recipe, and the papers' as their code runs it.

All of them: 50 rounds on the simulated cloud, 30 passes over a round's samples, judged after every round.
"""

from __future__ import annotations

from typing import Any

from research.experiment import merged
from webapp.jobs.form.presets import preset_document

WHOLE_ROUND = 16_384
_ROUNDS: dict[str, Any] = {
    "budget_usd": "1000",
    "training": {
        "algorithm": {"minibatch_size": WHOLE_ROUND},
        "rollout": {"deadline_s": 300.0},
        "evaluation": {"every_rounds": 1, "episodes": 3},
        "checkpoints": {"every_rounds": 25, "keep": 1},
        "stop": {"rounds": 50, "env_steps": None},
    },
    "platform": {"profile": "lambda", "stack": "paper-stack", "learner_sku": "p3.2xlarge", "workers": 1},
}
# The preset as it was when the first runs were made. It left our defaults where the papers' code has others: a joint
# gradient norm of 0.5, Adam's ε of 1e-5, and PPO2's value error. Stored runs are of this recipe.
_FIRST: dict[str, Any] = {
    "schema_version": 1,
    "name": "Hopper, as in the papers",
    "training": {
        "environment": {"id": "Hopper-v5"},
        "algorithm": {
            "kind": "ppo",
            "learning_rate": 5e-5,
            "learning_rate_decay": False,
            "discount": 0.99,
            "trace_decay": 1.0,
            "clip": 0.3,
            "epochs": 30,
            "value_coefficient": 1.0,
            "value_clip": 10.0,
            "kl_coefficient": 0.2,
            "kl_target": 0.01,
        },
        "network": {"kind": "mlp", "hidden": [256, 256], "log_std": "state"},
        "scaling": {"kind": "fixed", "actors": 16},
        "rollout": {"steps_per_call": 256},
    },
    "platform": {"kind": "simulated"},
}

_FIRST_REASON = (
    "The first recipe left our default here. The papers' code has another, and the experiment's successor runs as that"
    " code does."
)
FIRST_REASONS = dict.fromkeys(
    ("algorithm.value_error", "algorithm.gradient_clip", "algorithm.adam_epsilon"), _FIRST_REASON
) | {
    "algorithm.learning_rate": "At the papers' 5e-5 50 rounds are early learning; this asks the same where they come"
    " farther. On CartPole 1e-3 does.",
    "network.hidden": "CartPole needs no more than 64 × 64.",
    "rollout.steps_per_call": "CartPole's rounds are small, so that there can be many seeds; MinionsRL's are an eighth"
    " of the paper's, so that a run takes minutes on two cores.",
    "algorithm.minibatch_size": "In proportion to the samples of a round.",
    "algorithm.epochs": "Enough for CartPole's small rounds.",
    "stop.rounds": "As many as the experiment can afford.",
    "scaling.actors": "The arms say how many.",
}


def first_recipe(**algorithm: Any) -> dict[str, Any]:
    """The recipe of the first runs. `algorithm` changes single numbers, here and below."""
    return merged(merged(_FIRST, _ROUNDS), {"training": {"algorithm": algorithm}})


def paper_recipe(**algorithm: Any) -> dict[str, Any]:
    """PPO as the papers' code runs it: no gradient clip, Adam's ε of 1e-8, and RLlib's value error."""
    document = merged(preset_document("hopper-papers"), _ROUNDS)
    return merged(document, {"training": {"algorithm": algorithm}})
