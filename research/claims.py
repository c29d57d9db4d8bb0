"""What an experiment may say, each claim with its own bar. Labels: what kind of truth a claim rests on.

L: learned — it is in the returns of real training. T: timing — it rests on the simulated cloud's assumed times.
B: bill — it follows from prices and from who pays for what.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from training.base_model import FrozenModel

Label = Literal["L", "T", "B"]
Repeats = tuple[str, ...]
"""Keys of the papers' figures that a claim answers for (`figures.py`)."""
Declared = str
"""When a claim was declared, where that was after the first runs: "when all had run". Pages say it first."""
LABELS: dict[str, str] = {"L": "learned", "T": "assumed timing", "B": "bill"}


Meter = Literal["evaluation", "training"]
"""What a return is measured by: evaluations, or a round's own training episodes, as in the papers' curves."""


class Reaches(FrozenModel):
    """The arm's IQM of the endpoint is at least `value` there; the interval is shown beside it."""

    kind: Literal["reaches"] = "reaches"
    arm: str
    environment: str
    value: float
    source: str


class NotWorse(FrozenModel):
    """The paired IQM ratio, `arm` over `against`, is at least `margin` with its whole 95 % interval."""

    kind: Literal["not_worse"] = "not_worse"
    arm: str
    against: str
    environment: str
    margin: float = Field(gt=0, le=1)
    label: Label = "L"
    paper: str = ""
    repeats: Repeats = ()
    declared: Declared = ""


class NotBelow(FrozenModel):
    """The 95 % interval of the paired difference, `arm` − `against`, contains or exceeds 0: all that 3 seeds allow."""

    kind: Literal["not_below"] = "not_below"
    arm: str
    against: str
    environment: str


class ArmComparison(FrozenModel):
    """An arm over another one, in environments: judged by a 95 % interval, paired by seed. `alike`: equal within
    `margin`, as an A/A pair must be.
    """

    arm: str
    against: tuple[str, ...] = Field(min_length=1, max_length=1)
    environments: tuple[str, ...] = Field(min_length=1)
    alike: bool = False
    margin: float = Field(1.25, gt=1, description="Equal is a ratio between 1 / margin and margin.")
    paper: str = Field("", description="What the paper says of this.")
    repeats: Repeats = ()
    declared: Declared = ""


class Cheaper(ArmComparison):
    """Cost to the target, `arm` at `at` over `against` at `against_at`: below 1 with its whole 95 % interval.

    Geometric mean over `environments`, paired by seed. Several in `against`: for each seed the cheapest of them on all
    other seeds is compared with. `alike`: equal within `margin`, as an A/A pair must be.
    By the meter of training episodes the experiment's `training_targets` are to be reached.
    """

    kind: Literal["cheaper"] = "cheaper"
    at: str
    against: tuple[str, ...] = Field(min_length=1)
    against_at: str
    label: Label
    measure: Literal["dollars", "seconds"] = "dollars"
    accounting: Literal["bill", "paper"] = "bill"
    meter: Meter = "evaluation"
    until: Literal["target", "end"] = Field(
        "target", description="What is paid: until the target is reached, or for all rounds."
    )
    primary: bool = Field(
        False, description="The experiment's one question: shown first, and not corrected for the others."
    )
    over_draws: bool = Field(False, description="Judged over draws without being primary.")
    paper_value: float | None = Field(None, gt=0, description="The same as a ratio, where it is a number.")


class Higher(ArmComparison):
    """The final evaluation's return after all rounds, `arm` over `against`: above 1 with its whole 95 % interval.

    Geometric mean over `environments` of the ratio of IQMs, paired by seed. `alike`: equal within `margin`.
    """

    kind: Literal["higher"] = "higher"
    label: Label = "L"
    primary: bool = False
    paper_value: float | None = Field(None, gt=0)


class HigherInTime(ArmComparison):
    """The evaluated return when the quicker side has done all its rounds, `arm` over `against`: above 1 with its whole
    95 % interval. By the runs' own clocks, without evaluations and the start of machines.

    Where both sides rent the same machines, equal time is equal dollars and equal seconds of the GPU too.
    """

    kind: Literal["higher_in_time"] = "higher_in_time"
    label: Label = "T"
    paper_value: float | None = Field(None, gt=0)


class Sooner(ArmComparison):
    """What all rounds take by the runs' own clocks, `arm` over `against`: below 1 with its whole 95 % interval.

    For runs whose weights depend on timing: they are timed where they were trained. Where both sides rent the same
    machines it is the ratio of dollars too. Geometric mean over `environments`, paired by seed. Without `startup` the
    first rounds, in which machines start and what was sampled meanwhile is used up, count as the others do. `alike`:
    equal within `margin`.
    """

    kind: Literal["sooner"] = "sooner"
    label: Label = "T"
    startup: bool = True
    paper_value: float | None = Field(None, gt=0)


class Better(ArmComparison):
    """Return at equal dollars, as a share of the target: the paired difference is above 0 with its whole interval."""

    kind: Literal["better"] = "better"
    at: str
    against: tuple[str, ...] = Field(min_length=1)
    against_at: str
    label: Label = "L"
    meter: Meter = "evaluation"
    margin: float = Field(0.2, gt=0, description="Equal is a difference of at most this share of the target.")


class RanksForks(FrozenModel):
    """Curvature says where more actors help: Spearman's correlation of R_k and gain_k given k is below 0.

    `later`: the gain that is left after the branches' further rounds.
    """

    kind: Literal["foretells"] = "foretells"
    arm: str
    environment: str
    later: bool = False
    label: Label = "L"
    paper: str = ""
    repeats: Repeats = ()


class Repeatable(FrozenModel):
    """R repeats: some setting has a reliability of `least` or more for at most this `share` of a round."""

    kind: Literal["repeatable"] = "repeatable"
    arm: str
    environment: str
    least: float = Field(0.8, gt=0, le=1)
    share: float = Field(0.05, gt=0, le=1)
    label: Label = "L"
    paper: str = ""
    repeats: Repeats = ()


Claim = (
    Reaches
    | NotWorse
    | NotBelow
    | Cheaper
    | Higher
    | HigherInTime
    | Sooner
    | Better
    | RanksForks
    | Repeatable
)


def against_in(claim: Claim) -> tuple[str, ...]:
    against = getattr(claim, "against", ())
    return (against,) if isinstance(against, str) else against


def arms_in(claim: Claim) -> set[str]:
    return {claim.arm, *against_in(claim)}


def environments_in(claim: Claim) -> tuple[str, ...]:
    return claim.environments if isinstance(claim, ArmComparison) else (claim.environment,)
