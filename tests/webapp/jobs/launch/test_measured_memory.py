"""What a spec says that a job's process will take, against the peak of a process that runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rig.servers import ROOT
from webapp.jobs.launch.job_memory import memory_of
from webapp.jobs.spec import JobSpec

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="peaks are read as this system tells them"),
]

_TRAININGS: dict[str, dict[str, Any]] = {
    "one minibatch": {
        "algorithm": {"kind": "a2c"},
        "rollout": {"steps_per_call": 2048, "environments_per_actor": 16},
        "stop": {"env_steps": None, "rounds": 2},
    },
    "a large network": {
        "network": {"kind": "mlp", "hidden": [1536, 1536]},
        "algorithm": {"kind": "ppo", "epochs": 1, "minibatch_size": 256},
        "rollout": {"steps_per_call": 64},
        "stop": {"env_steps": None, "rounds": 10},
    },
    "many observations": {
        "environment": {"id": "Humanoid-v5"},
        "algorithm": {"kind": "ppo", "epochs": 2, "minibatch_size": 4096, "normalise_observations": True},
        "rollout": {"steps_per_call": 512, "environments_per_actor": 16},
        "stop": {"env_steps": None, "rounds": 2},
    },
}


def _peak_bytes(pid: int) -> int:
    """Return the peak of a program since it was started. What `wait4` tells has that of the process before it, too."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if "VmHWM" in line), 0)


@pytest.mark.parametrize("name", list(_TRAININGS))
def test_a_jobs_process_takes_about_what_its_spec_says(name: str, tmp_path: Path) -> None:
    training = {
        **_TRAININGS[name],
        "scaling": {"kind": "fixed", "actors": 4},
        "evaluation": {"episodes": 1, "every_rounds": 1000},
    }
    document = {"training": training, "platform": {"kind": "local", "workers": 1}}
    needs = memory_of(JobSpec.model_validate(document))
    assert needs is not None
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(document))
    process = subprocess.Popen(
        [sys.executable, "manage.py", "train", str(path), "--checkpoints", str(tmp_path / "kept")],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "STARLING_DATA": str(tmp_path / "data")},
    )
    measured = 0
    while process.poll() is None:
        measured = max(measured, _peak_bytes(process.pid))
        time.sleep(0.02)
    assert process.returncode == 0
    print(f"{name}: {measured / 2**20:.0f} MB measured, {needs.needs.job_bytes / 2**20:.0f} MB predicted")
    assert 0.9 < needs.needs.job_bytes / measured < 1.5
