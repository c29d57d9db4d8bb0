"""What is said of a user's own machines."""

from cloud.platforms.hosts import HostsOptions
from webapp.connections.gateway.queries import CallingMachines
from webapp.jobs import machines


def test_working_machines_are_counted_in_words() -> None:
    options = HostsOptions(machines=1)
    assert machines.words(CallingMachines(1, 1, 1, 1), options) == "1 machine is here: 1 actor, 1 at work."
