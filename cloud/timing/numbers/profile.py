"""The timing of a cloud: how its actors start, run, wait and fail, its network and its learner's place.

A profile is one TOML file in `cloud/timing/profiles` or in the installation's data folder. Every number there is a
table `{ value, low, high, source, kind }`; its unit is in its name. Prices are elsewhere: a profile only names what
is bought.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cloud.money.billing.price_book import PriceBook, UnknownSku
from cloud.timing.numbers.files import NumberFiles
from cloud.timing.numbers.quantity import ProfileError, Quantity, line_of, read_toml
from training.base_model import FrozenModel

PROFILES = Path(__file__).resolve().parent.parent / "profiles"


class Functions(FrozenModel):
    """Instances that start on demand, take one call at a time and are billed while they start and run.

    A cold start is log-normal around its median and never above the cap. An instance without a call for `keep_warm_s`
    is removed. A burst of `starts_at_once` instances can start at once, further ones at `starts_per_s`. Paid by
    duration times memory and by request, or (like containers) by core and memory.
    """

    kind: Literal["functions"] = "functions"
    cold_s: Quantity
    cold_sigma: Quantity
    cold_cap_s: Quantity
    warm_s: Quantity
    keep_warm_s: Quantity
    concurrent: Quantity
    starts_at_once: Quantity
    starts_per_s: Quantity
    whole_core_mb: Quantity
    most_cores: Quantity
    duration_sku: str | None = None
    request_sku: str | None = None
    provisioned_sku: str | None = None
    provisioned_duration_sku: str | None = None
    core_sku: str | None = None
    memory_sku: str | None = None


class Pool(FrozenModel):
    """Kept actors that take call after call, billed from the moment they are ordered until they are gone.

    With `units` the pool has that size from the first call to the job's end, like a cluster. Without, it grows with
    the calls in flight, and an actor without work is given up after `idle_s`. Paid by machine (one a unit), or by
    core and memory, or not at all: if the job's own machine does everything.
    """

    kind: Literal["pool"] = "pool"
    start_s: Quantity
    start_sigma: Quantity
    hand_over_s: Quantity
    creates_at_once: Quantity
    creates_per_s: Quantity
    idle_s: Quantity
    most_actors: Quantity
    actors_per_unit: int = Field(1, ge=1)
    units: int | None = Field(None, ge=1)
    cores_per_actor: float = Field(1.0, gt=0)
    memory_gb_per_actor: float = Field(1.0, gt=0)
    machine_sku: str | None = None
    core_sku: str | None = None
    memory_sku: str | None = None


class NetworkProfile(FrozenModel):
    """A call's transfer: the actor's own line, the coordinator's one line, which all calls share, and a round trip."""

    round_trip_s: Quantity
    actor_mbit_per_s: Quantity
    coordinator_mbit_per_s: Quantity
    payload_limit_mb: Quantity
    detour_s: Quantity


class RandomFaults(FrozenModel):
    """Random faults: failing calls, outcomes that come late, run times spread log-normally."""

    failure_share: Quantity
    late_share: Quantity
    late_s: Quantity
    straggler_sigma: Quantity


class LearnerPlace(FrozenModel):
    """A server is ordered with the first call and runs to the end; a function starts and stays warm like others.

    `sharing_mlp` and `sharing_cnn` say how much each further update on the same machine slows all: 1 means that k
    share it in k equal parts, 0 that they do not slow each other.
    """

    server_start_s: Quantity
    function_start_s: Quantity
    function_keep_warm_s: Quantity
    sharing_mlp: Quantity
    sharing_cnn: Quantity


class Profile(FrozenModel):
    """All timing that belongs to the cloud. What belongs to the software is a `Stack`."""

    title: str = Field(min_length=3)
    words: str = Field(min_length=10)
    region: str
    provider: Literal["aws", "azure"]
    actors: Annotated[Functions | Pool, Field(discriminator="kind")]
    core_ratio: Quantity
    network: NetworkProfile
    chance: RandomFaults
    learner: LearnerPlace
    default_learner_sku: str
    storage_put_sku: str | None = None
    storage_get_sku: str | None = None


def read(path: Path) -> Profile:
    """Return a profile from any file. Everything it buys must have a price."""
    profile = read_toml(path, Profile)
    for place, sku in _bought(profile):
        try:
            PriceBook.load().row(sku, profile.region)
        except UnknownSku as error:
            raise ProfileError(f"{path.name}:{line_of(path.read_text('utf-8'), place)}: {error}") from None
    return profile


def _bought(profile: Profile) -> list[tuple[list[str], str]]:
    """Return the SKUs with their paths in the file."""
    bought = [
        ([name], getattr(profile, name))
        for name in ("default_learner_sku", "storage_put_sku", "storage_get_sku")
    ]
    actors = profile.actors
    named = [name for name in type(actors).model_fields if name.endswith("_sku")]
    bought += [(["actors", name], getattr(actors, name)) for name in named]
    return [(place, sku) for place, sku in bought if sku is not None]


FILES = NumberFiles(PROFILES, "profile", "actors", read)
names, load = FILES.names, FILES.load
