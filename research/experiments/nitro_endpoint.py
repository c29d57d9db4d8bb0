"""Nitro's own endpoint at the papers' learning rate of 5e-5: final reward and cost after 50 rounds.

PPO runs as the papers' code runs it. `nitro_endpoint_fast` asks the same at 3e-4.
"""

from typing import Any

from research.claims import Cheaper, Higher
from research.experiment import Arm, Experiment, ExperimentSetting
from research.policies import NITRO_PRICING_TARGETS, fixed, nitro, scaled
from research.recipes import paper_recipe

MUJOCO = ("Hopper-v5", "Walker2d-v5", "Humanoid-v5")
SEEDS = tuple(range(200, 210))
ARMS: tuple[Arm, ...] = (
    nitro(),
    fixed(16),
    nitro("nitro_constant", "Nitro with R held constant", signal="constant"),
    Arm(name="nitro_spending", title="Nitro's spending, largest first", spends_like="nitro"),
    scaled("fixed_16_again", "fixed at 16 again, other seeds", again_of="fixed_16", kind="fixed", actors=16),
)
_HEADLINE = ("nitro", "fixed_16")
SETTINGS = (
    ExperimentSetting(environment="Hopper-v5", seeds=SEEDS),
    *(ExperimentSetting(environment=name, seeds=SEEDS, arms=_HEADLINE) for name in MUJOCO[1:]),
)
_ON_CLUSTER: dict[str, Any] = {
    "arm": "nitro",
    "at": "functions_paper",
    "against": ("fixed_16",),
    "against_at": "cluster_paper",
    "environments": MUJOCO,
    "until": "end",
}
_CONTROLS = ("nitro_constant", "nitro_spending")
CLAIMS = (
    Higher(
        arm="nitro",
        against=("fixed_16",),
        environments=MUJOCO,
        primary=True,
        paper="up to 5 × the final reward of PPO.",
        repeats=("nitro-10", "nitro-12"),
    ),
    Cheaper.model_validate(
        {
            **_ON_CLUSTER,
            "label": "B",
            "accounting": "paper",
            "paper": "up to −29 % against PPO on its cluster.",
            "paper_value": 0.71,
            "repeats": ("nitro-12", "nitro-14"),
        }
    ),
    Cheaper.model_validate({**_ON_CLUSTER, "label": "T", "over_draws": True, "repeats": ("nitro-14",)}),
    Cheaper.model_validate(
        {**_ON_CLUSTER, "label": "L", "against_at": "functions_paper", "repeats": ("nitro-17",)}
    ),
    *(Higher(arm="nitro", against=(name,), environments=("Hopper-v5",)) for name in _CONTROLS),
    Higher(arm="fixed_16", against=("fixed_16_again",), environments=("Hopper-v5",), alike=True),
)
ORACLE = (
    "The same arm on other seeds must come out equal; a cluster's bill must be its hourly price by its time; and the"
    " released code's own figures: curves that rise within 50 rounds and end far above an untrained policy."
)
ENDPOINT = "mean return of a final evaluation after 50 rounds: 20 episodes, deterministic, held-out seeds"
BESIDE = (
    "Nitro's figures 10 to 12 and 14 compare final rewards and costs after 50 rounds, each the best of six tasks,"
    " without seeds being fixed. Here are Hopper, Walker2d and Humanoid, of MuJoCo's v5, in ten fresh seeds; no Atari."
    " Policy and learning are as the released code runs them, and what still differs stands below with its reason."
)

EXPERIMENT = Experiment(
    title="Nitro's endpoint: final reward and cost after 50 rounds",
    question="Does boosting by curvature end 50 rounds with more reward and for less, at the paper's learning rate?",
    endpoint=ENDPOINT,
    oracle=ORACLE,
    can_claim="Ten seeds on each of three tasks: ratios of final reward of about 1.3 and more, and of cost of 1.1.",
    base=paper_recipe(),
    paper="nitro",
    arms=ARMS,
    settings=SETTINGS,
    pricing_targets=NITRO_PRICING_TARGETS,
    claims=CLAIMS,
    follows="nitro_rewards",
    beside=BESIDE,
)
