"""A thousand simulated functions on this machine, and what the simulation costs beside the real work that it runs."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rig.figures import Figure

_ROOT = Path(__file__).resolve().parent.parent
_PAIRS = 5
_THOUSAND = {"actors": 1000, "rounds": 1}
_SEVERAL = {"actors": 16, "rounds": 8}


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """One synchronous round of 1,000 actors; then the same rounds simulated and plainly local, in turns."""
    took_s, peak_mb = _run("simulated", **_THOUSAND)
    yield Figure("1,000 actors × 256 Hopper steps, one round", took_s, "s", at_most=90)
    yield Figure("memory of all its processes at most", peak_mb, "MB", at_most=2000)
    ratios = []
    for turn in range(2 if quick else _PAIRS):
        kinds = ("simulated", "local") if turn % 2 else ("local", "simulated")
        times_s = {kind: _run(kind, **_SEVERAL)[0] for kind in kinds}
        ratios.append(times_s["simulated"] / times_s["local"])
    yield Figure(
        "the same rounds simulated over local, real time",
        statistics.median(ratios),
        "×",
        at_most=1.05,
        data={"ratios": ratios},
    )


def _run(kind: str, actors: int, rounds: int) -> tuple[float, float]:
    """Real seconds from the first event to the end, and the peak memory of the processes in megabytes."""
    spec: dict[str, Any] = {
        "training": {
            "environment": {"id": "Hopper-v5"},
            "scaling": {"kind": "fixed", "actors": actors},
            "algorithm": {"kind": "ppo", "minibatch_size": 256 if actors < 100 else 4096},
            "evaluation": {"every_rounds": 1000, "episodes": 1},
            "stop": {"rounds": rounds, "env_steps": None},
        },
        "platform": {"kind": kind},
        "budget_usd": "100",
    }
    with tempfile.TemporaryDirectory(prefix="starling-bench-") as folder:
        path = Path(folder) / "spec.json"
        path.write_text(json.dumps(spec))
        command = [sys.executable, str(_ROOT / "manage.py"), "train", str(path), "--json"]
        process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
        began_s = None
        peak_mb = 0.0
        assert process.stdout is not None
        for line in process.stdout:
            began_s = began_s or time.monotonic()
            peak_mb = max(peak_mb, _memory_mb(process.pid))
            if json.loads(line)["kind"] == "stopped":
                break
        ended_s = time.monotonic()
        process.communicate()
        if process.returncode or began_s is None:
            raise RuntimeError(f"the {kind} run ended with exit code {process.returncode}")
    return ended_s - began_s, peak_mb


def _memory_mb(pid: int) -> float:
    """Peak resident memory of a process and its children, each by its own highest mark."""
    pids = [pid, *_children(pid)]
    return sum(_high_water_mb(one) for one in pids)


def _children(pid: int) -> list[int]:
    pids = []
    for name in os.listdir("/proc"):
        try:
            fields = (
                Path("/proc", name, "stat").read_text().rpartition(")")[2].split() if name.isdigit() else []
            )
        except OSError:
            continue
        if fields and int(fields[1]) == pid:
            pids += [int(name), *_children(int(name))]
    return pids


def _high_water_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    peaks = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(peaks[0]) / 1024 if peaks else 0.0
