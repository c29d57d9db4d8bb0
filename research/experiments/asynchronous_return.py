"""Does learning from data without waiting for it cost return, at equal optimiser passes?

Both arms pass ten times over each sample that is learned from: PPO in one update of 10 epochs, IMPACT likewise with
replay switched off, since how often old data is used again depends on which of actors and learner is faster that day.
Wall time is the bench's to measure, on a machine that does nothing else; here only returns count.
"""

from research.claims import NotWorse
from research.experiment import Arm, Experiment, ExperimentSetting
from research.experiments.learning_mujoco import RECIPE

_PPO = RECIPE["training"]["algorithm"]
_SHARED = (
    "learning_rate",
    "learning_rate_decay",
    "discount",
    "trace_decay",
    "clip",
    "epochs",
    "minibatch_size",
    "normalise_observations",
    "normalise_rewards",
)
IMPACT = {
    "kind": "impact",
    **{name: _PPO[name] for name in _SHARED},
    "replay_uses": 1,
    "replay_batches": 1,
}

EXPERIMENT = Experiment(
    title="Asynchronous IMPACT against synchronous PPO",
    question="Is the return of asynchronous IMPACT on Hopper not worse than that of synchronous PPO at equal passes?",
    oracle=(
        "The synchronous arm is the same recipe as `learning_mujoco`'s and must agree with it. IMPACT without lag"
        " is PPO (a test of the engine), so a gap comes from staleness or V-trace."
    ),
    can_claim=(
        '5 seeds: "not worse than 0.8 ×" by the lower bound of the paired IQM ratio.'
        " Asynchronous runs do not repeat bit for bit: what else the machine did decided how old their data was, 1.0 to"
        " 4.0 versions by quarters of a run. V-trace's advantages were those as printed, which are PPO's only at λ = 1."
        " `asynchronous_causes` asks which of these costs return."
    ),
    base=RECIPE,
    arms=(
        Arm(name="ppo_synchronous", title="PPO, synchronous"),
        Arm(
            name="impact_asynchronous",
            title="IMPACT, asynchronous",
            changes={
                "training": {
                    "algorithm": IMPACT,
                    "loop": {"kind": "asynchronous", "staleness_limit": 4},
                }
            },
        ),
    ),
    settings=(ExperimentSetting(environment="Hopper-v5", seeds=(0, 1, 2, 3, 4)),),
    claims=(
        NotWorse(arm="impact_asynchronous", against="ppo_synchronous", environment="Hopper-v5", margin=0.8),
    ),
)
