"""An alert to the installation's staff before a disk that Starling writes to is full."""

from __future__ import annotations

import logging
import shutil
import socket
from pathlib import Path

from django.conf import settings

from webapp.alerts import services
from webapp.alerts.models import About, AlertKind, Severity
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import format_file_size

log = logging.getLogger(__name__)

_NEARLY_NOTHING = 0.1
"""Below this share of the least space the alert is critical, and is sent again."""
_ROOM_AGAIN = 1.1
"""The alert ends with a little more than the least space, so that it does not come and go."""


def watch_disks(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Raise an alert for each disk of this machine's data folder with little free space, and end it with room again."""
    least = settings.STARLING_DISK_ALERT_MB * 10**6
    for folder in _folders_by_disk():
        try:
            free = shutil.disk_usage(folder).free
        except OSError as error:
            log.warning("the free space of %s cannot be read: %s", folder, error)
            continue
        key = f"disk:{socket.gethostname()}:{folder}"[:200]
        if free < least:
            services.raise_alert(
                project_id=None,
                kind=AlertKind.DISK,
                subject=About.DISK.subject(socket.gethostname())[:120],
                sentence=_sentence(folder, free),
                severity=Severity.CRITICAL if free < _NEARLY_NOTHING * least else Severity.WARNING,
                dedupe_key=key,
                clock=clock,
            )
        elif free >= _ROOM_AGAIN * least:
            words = f"{format_file_size(free)} are free for {folder} again."
            services.resolve_alert(project_id=None, dedupe_key=key, words=words, clock=clock)


def _folders_by_disk() -> list[Path]:
    """Return the data folder, and that of the checkpoints if it is on another disk."""
    data = Path(settings.STARLING_DATA)
    disks: dict[int, Path] = {}
    for folder in (data, data / "checkpoints"):
        if folder.is_dir():
            disks.setdefault(folder.stat().st_dev, folder)
    return list(disks.values())


def _sentence(folder: Path, free: int) -> str:
    return (
        f"{format_file_size(free)} are free for {folder} on {socket.gethostname()}. Once that disk is full, jobs wait"
        " and nothing can be changed on any page. Make room there, or give it a larger disk."
    )
