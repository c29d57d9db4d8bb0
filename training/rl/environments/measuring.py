"""The spaces of an environment, measured in a process of its own: an environment's code may do and take anything.

python -m training.rl.environments.measuring '{"id": "FrozenLake-v1"}' [package …]
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from threading import Lock

from training.engine.child_variables import clean_variables
from training.engine.memory_limit import MEGABYTE, is_out_of_memory, limit_memory
from training.rl import packages
from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.making import spaces_of
from training.rl.environments.model import EnvironmentSpec
from training.rl.spaces import Spaces

MEMORY_LIMIT_BYTES = 2048 * MEGABYTE
_WITHIN_S = 30.0
_measured: dict[EnvironmentSpec, Spaces | str] = {}
_one_at_a_time = Lock()


class NotMeasured(Exception):
    """The process gave no answer in time, so nothing is known of the environment."""


def measured_apart(environment: EnvironmentSpec) -> Spaces:
    """The environment's spaces, from the catalogue or measured once by a child process.

    ValueError if it cannot be made or learned from; NotMeasured if the child had no time.
    """
    if (entry := ENTRIES.get(environment.id)) is not None:
        return entry.spaces(environment.frame_stack)
    with _one_at_a_time:
        if environment not in _measured:
            _measured[environment] = _ask_child(environment)
        spaces = _measured[environment]
    if isinstance(spaces, str):
        raise ValueError(spaces)
    return spaces


def _ask_child(environment: EnvironmentSpec) -> Spaces | str:
    command = [sys.executable, "-m", __name__, environment.model_dump_json(), *packages.enabled()]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_WITHIN_S,
            check=False,
            env=clean_variables(),
        )
    except subprocess.TimeoutExpired:
        raise NotMeasured(environment.id) from None
    if done.returncode != 0:
        return f"its process ended with status {done.returncode} as it was made"
    answer = json.loads(done.stdout.splitlines()[-1])
    if isinstance(answer, str):
        return answer
    return Spaces(**{name: tuple(value) for name, value in answer.items()})


def main(document: str, *names: str) -> None:
    """Print the spaces, or the sentence that says why there are none, as the last line."""
    limit_memory(MEMORY_LIMIT_BYTES)

    packages.enable(names)
    try:
        answer: object = asdict(spaces_of(EnvironmentSpec.model_construct(**json.loads(document))))
    except Exception as error:  # an environment's code may raise anything
        answer = str(error) or type(error).__name__
        if is_out_of_memory(error):
            answer = f"it takes more than {MEMORY_LIMIT_BYTES // MEGABYTE:,} MB of memory as it is made"
    print(f"\n{json.dumps(answer)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
