"""Every figure and table of the papers under its own number: what it shows, what the paper says, and what repeats
it here, or why nothing does; and the stored results.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

Paper = Literal["MinionsRL", "Nitro", "Siren", "Stellaris"]
PAPERS: tuple[Paper, ...] = get_args(Paper)
_REWARDS = ("nitro_endpoint_fast", "nitro_endpoint", "nitro_rewards_fast", "nitro_rewards")


class PaperFigure(NamedTuple):
    """`repeated_by` names experiments and calculations, the one that answers first. `elsewhere`: where else it can be
    made. `remark` says how ours differs, or why there is none.
    """

    paper: Paper
    number: str
    shows: str
    says: str
    repeated_by: tuple[str, ...] = ()
    elsewhere: Literal["", "surface"] = ""
    remark: str = ""

    @property
    def key(self) -> str:
        """Its name in addresses: nitro-16ab, minionsrl-table-2, siren-toy-example."""
        number = re.sub(" ?[(),] ?", "", self.number.lower().removeprefix("figure "))
        return f"{self.paper.lower()}-{number.replace(' ', '-')}"


_minionsrl = partial(PaperFigure, "MinionsRL")
_nitro = partial(PaperFigure, "Nitro")
_siren = partial(PaperFigure, "Siren")
_stellaris = partial(PaperFigure, "Stellaris")
_STELLARIS = (
    "stellaris_82k",
    "stellaris_1m",
    "stellaris_82k_fast",
    "stellaris_walker",
    "stellaris_humanoid",
    "stellaris_gravitar",
    "stellaris_testbeds",
    "stellaris_ends",
)
_STELLARIS_COSTS = (
    *_STELLARIS,
    "stellaris_minionsrl",
    "stellaris_ablations",
    "stellaris_lambda",
    "stellaris_turns",
)
FIGURES: tuple[PaperFigure, ...] = (
    _minionsrl(
        "Figure 1 (b)",
        "Actors of a server cluster wait: for the slowest, and while the learner learns.",
        "A drawing, without a number.",
        ("minionsrl_idle",),
        remark="Computed from the profiles: the share of paid core-seconds in which nothing is sampled.",
    ),
    _minionsrl(
        "Figure 2",
        "The same number of actors in all, spent level, falling or rising.",
        "Different final rewards on CartPole, from single curves.",
        ("minionsrl_schedules",),
        remark="In proportion to the paper's, and with a control of equal updates.",
    ),
    _minionsrl(
        "Figure 4",
        "Rewards over rounds and time against Azure ML's cluster and IMPACT.",
        "Trains much faster than both on the same budget; up to −52 % of the time.",
        ("minionsrl_budget_mujoco", "minionsrl_table2"),
        remark="First with targets that ask for skill. No Atari: one round is about 200 processor-seconds.",
    ),
    _minionsrl(
        "Figure 5",
        "How many actors the trained scheduler starts in each round.",
        "Many at first, few on the plateau, a few more at the end.",
        ("minionsrl_budget_mujoco", "minionsrl_table2", "minionsrl_budget"),
        remark="Beside random numbers of actors and fixed ones of 2 to 32.",
    ),
    _minionsrl(
        "Figure 6",
        "Ablation: always the most actors (-Max), and by the ratio of rewards (-Adapt).",
        "Up to 44 % cheaper than -Max in the text; its table gives 29 % (Hopper) and 55 % (Qbert).",
        ("minionsrl_table2", "minionsrl_budget_mujoco", "minionsrl_budget"),
        remark="On Hopper, HalfCheetah, Humanoid and CartPole; with a budget that binds, on all but Humanoid.",
    ),
    _minionsrl(
        "Figure 7",
        "A round's time by its number of actors.",
        "It grows with the actors, steeper for Atari.",
        ("minionsrl_latency",),
        remark="Computed from the profiles.",
    ),
    _minionsrl(
        "Figure 8",
        "What of a round is start-up and transfer.",
        "300 ms to start an actor, 1,500 ms a learner; under 100 ms for 65,536 MuJoCo steps.",
        ("minionsrl_latency",),
        remark="Computed from the profiles, some of whose numbers are the paper's own.",
    ),
    _minionsrl(
        "Figure 9",
        "A scheduler of another task, trained on for a tenth of the episodes.",
        "Equal or better, for 10 % of the training's time and cost.",
        ("minionsrl_finetune",),
        remark="From CartPole to Hopper, with fewer episodes on both sides.",
    ),
    _minionsrl(
        "Table 2",
        "Time and cost to the same final reward.",
        "Up to −52 % of the time (HalfCheetah) and −86 % of the cost (Humanoid) against Azure ML.",
        ("minionsrl_budget_mujoco", "minionsrl_table2"),
        remark="First with targets that ask for skill. The paper's dollars are no product of time and a price, so that"
        " only ratios compare.",
    ),
    _nitro(
        "Figure 2",
        "One boost from 1 to 16 actors at three different rounds.",
        "At round 4 it helps much, at rounds 3 and 5 it does not.",
        ("branching", "branching_later", "r_reliability"),
        remark="All rounds are forked rather than three chosen ones.",
    ),
    _nitro(
        "Figure 3",
        "Reward surfaces after sampling with 1, 8 and 16 actors.",
        "The surface gets smoother and richer. Pictures of single policies.",
        elsewhere="surface",
        remark="Any checkpoint's surface can be measured on its job's page; pictures decide nothing.",
    ),
    _nitro(
        "Figure 4",
        "Where in ten rounds the score is high: by task, algorithm and run.",
        "It differs between all of them, and cannot be foretold.",
        _REWARDS,
        remark="R of each round and run, below. The best of six values of pure noise moves about as well.",
    ),
    _nitro(
        "Figure 5",
        "How soon functions and virtual machines stand.",
        "Functions within seconds, machines in about a minute; no numbers in the text.",
        ("nitro_startup",),
        remark="Computed from the profiles, with VM-pause and VM-replay.",
    ),
    _nitro(
        "Figure 7",
        "What a boost brings at the rounds of lowest, median and highest R.",
        "More where R is lower (Hopper: 0.78, 2.16, 3.43).",
        ("branching", "branching_later", "r_reliability"),
        remark="All rounds, with common random numbers and the round taken out.",
    ),
    _nitro(
        "Figure 8",
        "Reward surfaces at the lowest, median and highest R.",
        "Poorer where R is low. Pictures of single policies.",
        elsewhere="surface",
        remark="Any checkpoint's surface can be measured on its job's page.",
    ),
    _nitro(
        "Figure 9",
        "Gain and efficiency of boosts by 4 to 32 × through 50 rounds.",
        "Efficiency falls as training goes on, which is why the score decays.",
        ("branching", "branching_later", "r_reliability"),
        remark="Boosts by 4 × at every round.",
    ),
    _nitro(
        "Figure 10",
        "Rewards of PPO with and without Nitro.",
        "Up to 5 × the final reward, the best of six tasks.",
        _REWARDS,
        remark="At equal dollars, as a share of the target: ratios of rewards near zero say little.",
    ),
    _nitro(
        "Figure 11",
        "Rewards of IMPACT with and without Nitro.",
        "Up to 3 × the final reward.",
        _REWARDS,
        remark="By the cost to the target and by the return at equal dollars, asynchronous on both sides.",
    ),
    _nitro(
        "Figure 12",
        "Rewards of RLlib with and without Nitro.",
        "Up to 6 × the final reward, −21 % cost.",
        _REWARDS,
        remark="RLlib and PPO are one program in the released code, and here.",
    ),
    _nitro(
        "Figure 13",
        "Rewards of MSRL with and without Nitro.",
        "Up to 5 × the final reward, −30 % cost.",
        remark="Not repeated: nothing of the MSRL integration was released, so its numbers can only be quoted.",
    ),
    _nitro(
        "Figure 14",
        "Training costs with and without Nitro.",
        "Up to −29 % against PPO and −42 % against IMPACT.",
        _REWARDS,
        remark="By the paper's own formula and by the full bill, under both stacks.",
    ),
    _nitro(
        "Figure 15",
        "KungFu, Hydrozoa, MinionsRL and Nitro: actors, cost and reward.",
        "Nitro has the highest reward at the least cost.",
        _REWARDS,
        remark=(
            "KungFu both as published and as released with Nitro; beside ramps and random numbers. For MinionsRL stands"
            " its variant -Max: a scheduler would have to be trained for Nitro's cloud first."
        ),
    ),
    _nitro(
        "Figure 16 (a, b)",
        "Sensitivity to the decay d and the window n.",
        "Reward stops growing at d = 0.96; n = 6 is the best trade.",
        ("nitro_sensitivity",),
        remark="Two values on each side of the paper's.",
    ),
    _nitro(
        "Figure 16 (c)",
        "The memory of a function.",
        "No faster above 1,024 MB.",
        ("nitro_memory",),
        remark="Computed: memory changes no weight.",
    ),
    _nitro(
        "Figure 17",
        "Ablation: without functions, and without boosting.",
        "Both are needed.",
        _REWARDS,
        remark="Without functions means Nitro's own cluster; the paper's VM size and price do not fit each other.",
    ),
    _nitro(
        "Figure 18",
        "A group's time from 100 to 1,000 functions.",
        "Flat; Atari higher than MuJoCo.",
        ("nitro_scalability",),
        remark="Computed; a real round of 1,000 actors on the simulated cloud is measured by `bench scale`.",
    ),
    _nitro(
        "Figure 19",
        "At scale: 128 functions against 96 cores, four GPUs.",
        "2.4 × the reward and −22 % cost on Hopper, 2.5 × and −27 % on Qbert.",
        ("nitro_large",),
        remark="Hopper only, and one GPU that learns: four are not modelled.",
    ),
    _nitro(
        "Figure 20",
        "What each component adds to a round, and what bounding the Hessian saves.",
        "Each under 5 %; approximation 100 ×, a subset 10 × faster.",
        ("nitro_overhead",),
        remark="Measured on this machine.",
    ),
    _siren(
        "Toy example",
        "Logistic regression with 20 functions, 150, changing numbers, and on a server.",
        "Changing numbers: 202.55 s for $.019, as cheap as 20 functions and faster.",
        ("siren_toy",),
        remark="Computed from the slide's own figures, which have no numbers of epochs.",
    ),
    _siren(
        "Simulation",
        "The agent against a grid search over the number of functions, at four budgets.",
        "36, 13 and 10 % less time at 300, 200 and 100 dollars; both fail at 50.",
        ("siren_agent", "siren_simulation"),
        remark="Run again on arithmetic that gives the slides' grid; and what the table implies.",
    ),
    _siren(
        "Testbed against servers",
        "Time and cost of LeNet on functions and on MXNet's servers.",
        "Curves without numbers in the text.",
        ("siren_testbed",),
        remark="LeNet on drawn glyphs, on functions and on servers that run our engine; MXNet is not run.",
    ),
    _siren(
        "Training of the agent",
        "The agent's reward over its episodes, simulated and on the testbed.",
        "Curves without numbers in the text.",
        ("siren_testbed",),
        remark="Its score over rehearsals on arithmetic that is fitted to recorded trainings.",
    ),
    _siren(
        "Time against cost",
        "LeNet, a text CNN and click-through prediction on functions and servers.",
        "Up to 44.3 % less time at the same cost.",
        ("siren_testbed", "siren_descent"),
        remark=(
            "LeNet and click-through, on functions, servers and scikit-learn; the loop beside the synchronous one, and"
            " what it pushes. No text CNN: the slides print neither its layers nor its data."
        ),
    ),
    _stellaris(
        "Rewards",
        "Rewards over time with Stellaris and without, on MuJoCo and Atari.",
        "Up to 2.2 × the final reward.",
        _STELLARIS,
        remark=(
            "Hopper, Walker2d and Humanoid against PPO with 40 gradients a round, with 10 as the paper's baseline has,"
            " and with one asynchronous learner. Of Atari Gravitar, for 25,600 steps."
        ),
    ),
    _stellaris(
        "Costs",
        "Training costs against PPO, IMPACT, RLlib and MinionsRL.",
        "−31 % against PPO, −30 % against IMPACT, −41 % against MinionsRL.",
        _STELLARIS_COSTS,
        remark=(
            "Against PPO, IMPACT and MinionsRL. One hourly rate prices both sides in the paper, so that the ratio of"
            " times is that of costs."
        ),
    ),
    _stellaris(
        "Feature table",
        "Which frameworks have asynchronous learners, scalable actors, on- and off-policy algorithms, and functions.",
        "Stellaris alone has all four.",
        ("stellaris_features", "stellaris_ablations"),
        remark="By short runs of our loops, and longer ones on PPO, IMPALA and IMPACT. Not of other frameworks.",
    ),
    _stellaris(
        "Ablation",
        "What truncation and staleness-aware aggregation each bring.",
        "Both are needed. The slides name the parts and print no number.",
        ("stellaris_ablations", "stellaris_truncation", "stellaris_options"),
        remark="Beside other truncation rules, a control, a fixed bound, and the decoupled objective.",
    ),
    _stellaris(
        "HPC cluster",
        "Rewards and costs against PAR-RL on 960 cores and 16 GPUs.",
        "2.4 × the reward and −19 % cost on Hopper, 1.1 × and −34 % on Qbert, by a reader's note.",
        remark="Not repeated: PAR-RL is undefined in every source.",
    ),
)
DRAWINGS = (
    "MinionsRL's figures 1 (a, c) and 3, Nitro's 1 and 6 and Siren's drawings of its architecture: there is nothing to"
    " repeat."
)


def figures_of(name: str) -> list[PaperFigure]:
    """What an experiment or calculation repeats."""
    return [figure for figure in FIGURES if name in figure.repeated_by]


RESULTS = Path(__file__).resolve().parents[3] / "research" / "results"
_read: dict[Path, tuple[int, dict[str, Any]]] = {}
"""Results by file, with the time of its last change: they are read again when it has changed."""


def result_names() -> list[str]:
    return sorted(path.stem for path in RESULTS.glob("*.json"))


def find_result(name: str) -> dict[str, Any] | None:
    """The stored results of an experiment or calculation; None without results or without a title in them."""
    if name not in result_names():
        return None
    path = RESULTS / f"{name}.json"
    try:
        written_ns = path.stat().st_mtime_ns
        known = _read.get(path)
        if known is None or known[0] != written_ns:
            known = _read[path] = (written_ns, json.loads(path.read_text("utf-8")))
    except (OSError, ValueError):
        return None
    return known[1] if "title" in known[1] else None
