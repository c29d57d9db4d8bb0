"""Who runs against whom in `manage.py bench engine`: each contestant is a process of its own that prints JSON.

Contestants get all settings in one JSON argument. `sb3` and `rllib` run in `.venv-bench` (`make bench-setup`).
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rig.figures import NotSetUp

ROOT = Path(__file__).resolve().parent.parent.parent
PEERS_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
_QUIET_BUSY = 0.10
_QUIET_WAIT_S = 30.0


def run(
    contestant: str, *, threads: int | None = None, timeout_s: float = 420.0, **settings: Any
) -> dict[str, Any]:
    """What `benchmarks.peers.CONTESTANT` measured, on a machine that was waited for until it was quiet."""
    python = str(PEERS_PYTHON) if contestant in ("sb3", "rllib") else sys.executable
    if not Path(python).exists():
        raise NotSetUp("the peers are not installed: run `make bench-setup`")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if threads is None and contestant in ("bare", "actor"):
        threads = 1
    if threads is not None:
        settings["threads"] = threads
        environment |= {f"{library}_NUM_THREADS": str(threads) for library in ("OMP", "MKL", "OPENBLAS")}
    busy = wait_until_quiet()
    done = subprocess.run(
        [python, "-W", "ignore", "-m", f"benchmarks.peers.{contestant}", json.dumps(settings)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{contestant} {settings} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**measured, "others_busy": round(busy, 3)}


def wait_until_quiet() -> float:
    """How busy others keep this machine, after at most half a minute's wait for them to be done."""
    end_s = time.monotonic() + _QUIET_WAIT_S
    while True:
        began_s, began_busy_s = time.monotonic(), _busy_s()
        time.sleep(1.0)
        share = (_busy_s() - began_busy_s) / (time.monotonic() - began_s) / (os.cpu_count() or 1)
        if share < _QUIET_BUSY or time.monotonic() > end_s:
            return max(0.0, share)


def _busy_s() -> float:
    """Seconds of all cores that were not idle since the machine began; 0 where the kernel does not say."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return 0.0
    return (sum(fields[:8]) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")
