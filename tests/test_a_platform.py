"""A platform is its file and a row: one for tests alone passes the contract suite and what jobs and pages ask."""

from pathlib import Path

import pytest

from tests.copied_code import copy_with, run_in_copy

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
    run_in_copy(
        tmp_path, "tests/spare_machine/in_copy.py", "tests/cloud/test_platform_contract.py", "-k", "spare"
    )
