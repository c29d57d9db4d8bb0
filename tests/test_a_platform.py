"""A platform is its file and a row: one for tests alone passes the contract suite and what jobs and pages ask."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.quadratic.copied import copy_with

_HERE = Path(__file__).resolve().parent
_ROWS = {
    "cloud/platforms/options.py": [
        ("| HostsOptions | RayOptions\n", "| HostsOptions | RayOptions | SpareOptions\n"),
        (
            "import SimulatedOptions\n",
            "import SimulatedOptions\nfrom cloud.platforms.spare import SpareOptions\n",
        ),
    ],
    "tests/cloud/test_platform_contract.py": [
        ('    "local": _local,\n', '    "local": _local,\n    "spare": _spare,\n'),
        (
            "@contextmanager\ndef _simulated()",
            "@contextmanager\ndef _spare() -> Iterator[Opened]:\n"
            "    from cloud.platforms.spare import SpareOptions\n\n"
            "    platform = SpareOptions().open()\n"
            "    yield Opened(platform, platform._executor.worker_pids)\n\n\n"
            "@contextmanager\ndef _simulated()",
        ),
    ],
}


@pytest.mark.slow
def test_one_file_and_its_rows_are_a_platform(tmp_path: Path) -> None:
    copy_with(tmp_path, {_HERE / "spare_machine" / "platform.py": "cloud/platforms/spare.py"}, _ROWS)
    suites = ["tests/spare_machine/in_copy.py", "tests/cloud/test_platform_contract.py"]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suites, "-k", "spare"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
