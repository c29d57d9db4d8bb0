"""What the options of every platform declare, so that other rooms ask them and none branches on a kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from cloud.accounts.connections import AwsConnection, AzureConnection
from cloud.accounts.register import Holder
from cloud.timing.numbers import profile as profiles
from training.base_model import FrozenModel
from training.engine.ports import Platform
from training.tasks.training import Training

if TYPE_CHECKING:
    from cloud.platforms.pulled import ReachableMailbox
    from cloud.platforms.simulated_options import SimulatedOptions
    from cloud.timing.numbers.profile import Profile

_Connection = TypeVar("_Connection", AwsConnection, AzureConnection)
Cloud = Literal["aws", "azure"]
"""The clouds that an account is connected in."""


class NoConnection(ValueError):
    """The platform needs an account or a mailbox that this process cannot reach."""


def _unreachable(*_: str) -> Any:
    raise NoConnection("This platform needs the dashboard and its connections: launch the job there.")


@dataclass(frozen=True)
class Access:
    """What a run reaches beside this machine. Without the dashboard it reaches nothing.

    `connect` returns a connection of the project, by its id, with its secrets; `hold` the holder of resources in its
    account; `reach` the mailbox from which the run's actors fetch their calls.
    """

    connect: Callable[[str], AwsConnection | AzureConnection] = _unreachable
    hold: Callable[[str], Holder] = _unreachable
    reach: Callable[[], ReachableMailbox] = _unreachable

    def connection(self, named: str, of: type[_Connection]) -> _Connection:
        connection = self.connect(named)
        if not isinstance(connection, of):
            raise NoConnection("The connection of this job is to another cloud than its platform's.")
        return connection


class PlatformModel(FrozenModel):
    """A job's options on one platform."""

    place: ClassVar[str]
    """Where a job runs, in a sentence: "AWS Lambda"."""
    report_name: ClassVar[str] = "Own machines"
    cloud: ClassVar[Cloud | None] = None
    """The cloud in which a job needs a connected account."""
    computes_here: ClassVar[bool] = False
    """Whether actors are processes of this machine and need no account. Jobs on other platforms only learn here, and
    what they rent elsewhere is paid while they wait."""
    is_simulated: ClassVar[bool] = False
    """Whether calls run here in virtual time, and no one pays."""
    machines_stay: ClassVar[bool] = False
    """Whether the machines outlive a run, which rents them while it uses them."""
    people_start_actors: ClassVar[bool] = False
    """Whether a person starts the actors' machines, once for all runs of a job."""
    actors_have_torch: ClassVar[bool] = True
    actors_have_packages: ClassVar[bool] = True
    """Whether an actor may have further packages that the operator allows."""
    actor_word: ClassVar[str] = "actor"

    @property
    def subject(self) -> str:
        """The platform as the subject of a sentence in the past tense."""
        return self.place

    @property
    @abstractmethod
    def alike(self) -> SimulatedOptions:
        """The simulated cloud that is most like this platform: bills are divided and forecasts made by its numbers."""

    @property
    def actor_slots(self) -> int:
        """How many actors share a rent that is paid for all of them."""
        return 1

    @property
    @abstractmethod
    def longest_start_s(self) -> float | None:
        """The worst time until an actor has started; None on the simulated cloud, whose profile says it."""

    @property
    def has_functions(self) -> bool:
        """Whether an actor has exactly the memory that the job asks for."""
        return False

    @property
    def actor_memory_mb(self) -> tuple[str, int] | None:
        """The field of these options that says how much memory an actor has, and the amount; None if none does."""
        return None

    def forecast_profile(self, training: Training) -> Profile:
        """Return the cloud in numbers that a forecast simulates."""
        return profiles.load(self.alike.profile)

    def processes_here(self, actors: int) -> int:
        """Return how many processes of this machine do the calls of so many actors."""
        return 0

    def memory_sizes_mb(self, requested_mb: int) -> Sequence[int]:
        """Return the sizes that an actor's memory can have here in one run, smallest first. Where nothing else was set
        up, or where memory is not bought by the call, it is the size that the job asks for.
        """
        return (requested_mb,)

    @abstractmethod
    def open_for_job(self, access: Access) -> Platform:
        """Return the platform, opened with what the job reaches. Raises NoConnection."""
