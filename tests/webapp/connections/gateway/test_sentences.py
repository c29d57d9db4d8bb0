"""What is said of a user's own machines."""

import pytest

from cloud.platforms.hosts import HostsOptions
from webapp.connections.gateway.queries import CallingMachines
from webapp.jobs import machines


@pytest.mark.parametrize(
    ("calling", "expected", "sentence"),
    [
        ((1, 1, 1, 1), 1, "1 machine is here: 1 actor, 1 at work."),
        ((2, 2, 3, 0), 2, "2 machines are here: 3 actors, 0 at work."),
        ((1, 1, 2, 0), 2, "1 machine is here, 2 are expected: 2 actors, 0 at work."),
        ((0, 0, 0, 0), 2, "Waiting for machines: 0 of 2 have connected."),
        (
            (2, 0, 0, 0),
            2,
            "None of your machines is connected now; 2 of 2 have connected. Calls wait 60 min for one.",
        ),
    ],
)
def test_machines_are_counted_in_words(
    calling: tuple[int, int, int, int], expected: int, sentence: str
) -> None:
    assert machines.words(CallingMachines(*calling), HostsOptions(machines=expected)) == sentence
