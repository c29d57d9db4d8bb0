"""Where runs of an experiment are timed and priced: a cloud, a software stack, and what is bought there.

The same run is played again at each of these, so that one training answers for all. `formula` is what the paper of
that cloud says a training costs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Literal

from cloud.money.billing.price_book import PriceBook
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import profile as profiles
from cloud.timing.place import TimingPlace
from training.base_model import FrozenModel


class PricingTarget(FrozenModel):
    title: str
    profile: str
    stack: Literal["paper-stack", "starling-stack"]
    learner: Literal["server", "function"] = "server"
    learner_sku: str | None = None
    learner_machines: int = 1
    learner_lanes: int = 1
    formula: str

    @property
    def options(self) -> SimulatedOptions:
        return SimulatedOptions(
            profile=self.profile,
            stack=self.stack,
            learner=self.learner,
            learner_sku=self.learner_sku,
            learner_machines=self.learner_machines,
            learner_lanes=self.learner_lanes,
        )

    def place(self, book: PriceBook) -> TimingPlace:
        return TimingPlace.of(self.options, book)

    def sells(self, options: SimulatedOptions) -> bool:
        """Return whether a job with these options buys what is bought here."""
        ours = self.options
        same = ("profile", "stack", "learner", "machine", "learner_machines", "learner_lanes")
        return all(getattr(ours, name) == getattr(options, name) for name in same)


def _both(name: str, title: str, **fields: str | int) -> dict[str, PricingTarget]:
    """A cloud under both stacks: the papers' software and ours."""
    return {
        f"{name}_{stack}": PricingTarget.model_validate(
            {"title": f"{title}, {stack} stack", "stack": f"{stack}-stack", **fields}
        )
        for stack in ("paper", "starling")
    }


PRICING_TARGETS: dict[str, PricingTarget] = {
    **_both(
        "functions",
        "Lambda functions and a GPU machine",
        profile="lambda",
        learner_sku="p3.2xlarge",
        formula="nitro-intended",
    ),
    "functions_cpu": PricingTarget(
        title="Lambda functions and a CPU machine (c5.4xlarge) that learns, starling stack",
        profile="lambda",
        stack="starling-stack",
        formula="nitro-intended",
    ),
    **_both("cluster", "Nitro's server cluster", profile="nitro-cluster", formula="nitro-cluster"),
    **_both(
        "containers",
        "Azure containers as in MinionsRL, learner as a function",
        profile="aci-paper",
        learner="function",
        formula="minionsrl",
    ),
    **_both(
        "azure_cluster",
        "MinionsRL's server cluster",
        profile="minionsrl-cluster",
        formula="minionsrl-cluster",
    ),
    **_both(
        "stellaris_cluster",
        "Stellaris' server cluster, four learners on its GPU",
        profile="stellaris-cluster",
        learner_lanes=4,
        formula="stellaris-cluster",
    ),
    **_both(
        "stellaris_gpu",
        "Stellaris' GPU testbed, four learners on two GPUs",
        profile="stellaris-gpu",
        learner_machines=2,
        learner_lanes=4,
        formula="stellaris-cluster",
    ),
    **_both(
        "stellaris_hpc",
        "Stellaris' HPC testbed, 16 learners on 16 GPUs",
        profile="stellaris-hpc",
        learner_machines=4,
        learner_lanes=16,
        formula="stellaris-cluster",
    ),
    **_both(
        "lambda_learners",
        "Lambda functions and a small machine (m4.large) that coordinates",
        profile="lambda",
        learner_sku="m4.large",
        formula="stellaris-cluster",
    ),
    "containers_today": PricingTarget(
        title="Azure containers as they are today, learner as a function",
        profile="aci-today",
        stack="starling-stack",
        learner="function",
        formula="minionsrl",
    ),
    "machine": PricingTarget(
        title="One plain CPU machine (c5.4xlarge) with our engine",
        profile="one-machine",
        stack="starling-stack",
        formula="one-machine",
    ),
    "machine_small": PricingTarget(
        title="One small CPU machine (m4.large) with our engine",
        profile="one-small-machine",
        stack="starling-stack",
        formula="one-small-machine",
    ),
    "machine_spot": PricingTarget(
        title="The same machine at its spot price",
        profile="one-machine-spot",
        stack="starling-stack",
        formula="one-machine",
    ),
}


Account = Literal["full", "no_startup", "no_rebuild"]
"""Everything; or without the start of machines, functions and processes; or without workers rebuilt in each call."""
_LEFT_OUT: dict[Account, dict[str, tuple[str, ...]]] = {
    "full": {},
    "no_startup": {
        "actors": ("start_s", "cold_s"),
        "learner": ("server_start_s", "function_start_s"),
        "stack": ("import_s", "first_environment_s"),
    },
    "no_rebuild": {"stack": ("rebuild_s",)},
}


@cache
def place_of(name: str, account: Account = "full") -> TimingPlace:
    """The pricing target with today's numbers and prices, by one account."""
    place = PRICING_TARGETS[name].place(PriceBook.load())
    left_out = _LEFT_OUT[account]
    profile = place.profile.model_copy(
        update={
            part: _without(getattr(place.profile, part), left_out[part])
            for part in ("actors", "learner")
            if part in left_out
        }
    )
    stack = _without(place.stack, left_out.get("stack", ()))
    return replace(place, profile=profile, stack=stack)


def _without(numbers: Any, names: tuple[str, ...]) -> Any:
    """The numbers with those named at 0."""
    zeros = {
        name: getattr(numbers, name).model_copy(update={"value": 0.0, "low": 0.0, "high": 0.0})
        for name in names
        if hasattr(numbers, name)
    }
    return numbers.model_copy(update=zeros)


def machine_start_s(profile: str) -> float:
    """Return how long the profile's rented machines take to start."""
    actors = profiles.load(profile).actors
    if not isinstance(actors, profiles.Pool):
        raise ValueError(f"The actors of {profile} are functions, not rented machines.")
    return actors.start_s.value
