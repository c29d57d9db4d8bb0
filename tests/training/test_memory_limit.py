"""Limits of a process's memory: what is refused, what is said, and what code of others may take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rig.servers import ROOT
from tests.hungry import hungry_package
from training.engine.memory_limit import kills_for_memory, machine_bytes, resident_bytes
from training.rl.environments import measuring
from training.rl.environments.measuring import measured_apart
from training.rl.environments.model import EnvironmentSpec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no other system limits memory so")


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_process_is_refused_what_is_beyond_its_limit_and_has_room_again_to_say_so() -> None:
    said = _python(
        "import numpy as np\n"
        "from training.engine import memory_limit\n"
        "from cloud.failures import from_exception\n"
        "memory_limit.limit_growth(300 * 2**20)\n"
        "kept = np.ones(100 * 2**20, np.uint8)\n"
        "try:\n"
        "    np.ones(400 * 2**20, np.uint8)\n"
        "except MemoryError as error:\n"
        "    found = from_exception(error)\n"
        "    print(found.code, found.reason.splitlines()[0])\n"
        "print(memory_limit.resident_bytes(__import__('os').getpid()) < 300 * 2**20)\n"
        "memory_limit.lift_limit()\n"
        "print(len(np.ones(400 * 2**20, np.uint8)))\n"
    )
    first, below, lifted = said.splitlines()
    assert first.startswith("memory ")
    assert "300 MB" in first
    assert (below, lifted) == ("True", str(400 * 2**20))


def test_what_the_machine_has_is_known_and_no_more_than_what_the_kernel_says() -> None:
    total = Path("/proc/meminfo").read_text().split()[1]
    assert 0 < machine_bytes() <= int(total) * 1024
    assert resident_bytes(2**22 + 1) == 0
    assert kills_for_memory() >= 0


def test_an_environment_is_measured_with_little_memory_and_without_this_processs_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "_measured", {})
    monkeypatch.setenv("SECRET_KEY", "kept from children")
    with hungry_package(tmp_path, monkeypatch):
        with pytest.raises(ValueError, match=r"more than 2,048 MB"):
            measured_apart(EnvironmentSpec.model_construct(id="Huge-v0", frame_stack=4))
        with pytest.raises(ValueError, match="SECRET_KEY is None"):
            measured_apart(EnvironmentSpec.model_construct(id="Curious-v0", frame_stack=4))
        assert measured_apart(
            EnvironmentSpec.model_construct(id="Growing-v0", frame_stack=4)
        ).observation_shape == (4,)
