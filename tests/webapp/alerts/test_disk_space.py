"""Staff hear of a disk before it is full, once, and again when there is room."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from webapp.alerts.disk_space import watch_disks
from webapp.alerts.models import Alert, AlertKind

pytestmark = pytest.mark.django_db


@pytest.fixture
def disk(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """A disk of 4 MB for the checkpoints, beside a data folder with enough room; staff want 1 MB free."""
    settings.STARLING_DATA = tmp_path
    settings.STARLING_DISK_ALERT_MB = 1
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(folder: Path, free: int) -> None:
    with (folder / "filler").open("wb") as file:
        file.write(bytes(shutil.disk_usage(folder).free - free))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_staff_get_one_message_before_a_disk_is_full_one_when_it_grows_worse_and_one_at_its_end(
    disk: Path,
) -> None:
    watch_disks()
    assert not Alert.objects.exists()
    _fill(disk, 500_000)
    watch_disks()
    watch_disks()
    alert = Alert.objects.get()
    assert (alert.kind, alert.severity, alert.project, alert.raise_count) == (
        AlertKind.DISK,
        "warning",
        None,
        2,
    )
    assert str(disk) in alert.sentence
    (disk / "filler").unlink()
    _fill(disk, 50_000)
    watch_disks()
    alert.refresh_from_db()
    assert alert.severity == "critical"
    (disk / "filler").unlink()
    watch_disks()
    alert.refresh_from_db()
    assert alert.state == "resolved"
    assert "are free" in alert.over_words
    assert list(alert.deliveries.order_by("turn").values_list("turn", "over")) == [
        (1, False),
        (2, False),
        (3, True),
    ]


def test_no_alert_is_raised_where_operators_want_none(settings: Any) -> None:
    settings.STARLING_DISK_ALERT_MB = 0
    watch_disks()
    assert not Alert.objects.exists()
