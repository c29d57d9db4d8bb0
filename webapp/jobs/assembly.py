"""Where training and cloud meet: a spec and a ledger in, a platform that cannot spend around that ledger out."""

from collections.abc import Callable

from cloud.aws_lambda import LambdaOptions
from cloud.connections import AwsConnection
from cloud.hosts import HostsOptions
from cloud.metering import MeteredPlatform
from cloud.price_book import PriceBook
from cloud.pulled import Reached
from cloud.register import Holder
from training.ports import Ledger
from webapp.jobs.spec import JobSpec

Connect = Callable[[str], AwsConnection]
"""Opens the connection of that id, with its secrets, for the process that asks."""

Reach = Callable[[], Reached]
"""Opens the mailbox from which the run's actors fetch their calls."""

Hold = Callable[[str], Holder]
"""On whose behalf things are held in the account of the connection of that id."""


class NoConnection(ValueError):
    """A spec that runs in somebody's account, given to someone who knows of none."""


def assemble(
    spec: JobSpec,
    ledger: Ledger,
    connect: Connect | None = None,
    reach: Reach | None = None,
    hold: Hold | None = None,
) -> MeteredPlatform:
    """The spec's platform, opened, behind `ledger`. The caller closes it."""
    options = spec.platform
    tariff = options.tariff(PriceBook.load(), spec.training.rollout.memory_mb)
    if isinstance(options, LambdaOptions):
        if connect is None:
            raise NoConnection("AWS Lambda needs a connection of a project; launch the job in the dashboard.")
        holder = hold(options.connection) if hold is not None else None
        return MeteredPlatform(options.open(connect(options.connection), holder), ledger, tariff)
    if isinstance(options, HostsOptions):
        if reach is None:
            raise NoConnection("Machines of yours call at the dashboard; launch the job there.")
        return MeteredPlatform(options.open(reach()), ledger, tariff)
    return MeteredPlatform(options.open(), ledger, tariff)
