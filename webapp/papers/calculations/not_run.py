"""Every figure and table of the two papers: which experiment repeats it, or why none does."""

from __future__ import annotations

from webapp.papers.calculation import Calculation, Statement, Table

_WHERE: tuple[tuple[str, str, str], ...] = (
    ("MinionsRL 1, 3", "not run", "they draw architectures"),
    ("MinionsRL 2", "minionsrl_schedules", "CartPole, in proportion"),
    ("MinionsRL 4–6, table 2", "minionsrl_table2", "MuJoCo and CartPole; Atari: see below"),
    ("MinionsRL 7, 8", "minionsrl_latency", "arithmetic from the profiles"),
    ("MinionsRL 9", "minionsrl_finetune", "from CartPole to Hopper"),
    ("Nitro 1, 6", "not run", "they draw architectures"),
    ("Nitro 2, 7, 9", "branching", "all rounds rather than three or five chosen ones"),
    (
        "Nitro 3, 8",
        "the landscape of any checkpoint, on demand",
        "pictures of single policies, no comparison",
    ),
    ("Nitro 4", "nitro_rewards, nitro_rewards_fast", "each round's R and score stand in the runs' rows"),
    ("Nitro 5", "nitro_startup", "arithmetic from the profiles"),
    (
        "Nitro 10, 11",
        "nitro_rewards, nitro_rewards_fast",
        "PPO and IMPACT, with controls that the paper has not",
    ),
    ("Nitro 12", "nitro_rewards, nitro_rewards_fast", "RLlib and PPO are one program in the released code"),
    (
        "Nitro 13",
        "not run",
        "nothing of MSRL was released: its numbers can only be quoted (up to 5 × and −30 %)",
    ),
    (
        "Nitro 14, 15, 17",
        "nitro_rewards, nitro_rewards_fast",
        "costs, the other scalers, and the ablations, as arms",
    ),
    ("Nitro 16 (a, b)", "nitro_sensitivity", "two values on each side of the paper's"),
    ("Nitro 16 (c)", "nitro_memory", "arithmetic: memory changes no weight"),
    ("Nitro 18", "nitro_scalability", "arithmetic, and `bench scale` for real rounds of 1,000 actors"),
    ("Nitro 19", "not run", "four GPUs and 96 cores for each round are beyond two cores"),
    ("Nitro 20", "nitro_overhead", "measured"),
    (
        "Atari, both papers",
        "not run",
        "about 200 processor-seconds for one round of MinionsRL: not tested at scale",
    ),
)


def compute(quick: bool) -> tuple[list[Table], list[Statement]]:
    table = Table("Figures and where they are", ("figure", "experiment", "remark"), _WHERE)
    return [table], [
        Statement(f"{figure}.", "not run", f"{remark[:1].upper()}{remark[1:]}.", "reason")
        for figure, where, remark in _WHERE
        if where == "not run"
    ]


CALCULATION = Calculation(
    title="Figures of MinionsRL and Nitro: where each is repeated, and what is not",
    question="Which figures are repeated here, by what, and why are the others not?",
    oracle="Every experiment that is named here exists.",
    can_claim="Nothing but where to look.",
    compute=compute,
)
