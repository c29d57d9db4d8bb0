"""The command as a download: the client's folder as one file that Python runs."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "client"
_FIRST_LINE = b"#!/usr/bin/env python3\n"
_BEGINS = "import sys\n\nfrom starling.main import main\n\nsys.exit(main())\n"


@cache
def packed_command() -> bytes:
    """The file, the same bytes from the same sources. On the path, it also serves `from starling import Starling`."""
    packed = io.BytesIO()
    files = {f"starling/{path.name}": path.read_text("utf-8") for path in sorted(FOLDER.glob("*.py"))}
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**files, "__main__.py": _BEGINS}.items():
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return _FIRST_LINE + packed.getvalue()
