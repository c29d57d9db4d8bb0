"""In a fresh checkout several test processes compile each test file once, not each process all of them.

pytest compiles a file at its first import, with assertions that tell what they compared, and keeps the result. Every
process imports all files: so each begins at another one, and finds compiled what the others had before.
"""

import importlib
from contextlib import suppress

import pytest

from rig.servers import ROOT


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    config = session.config
    process: dict[str, str] | None = getattr(config, "workerinput", None)
    if process is None or config.args_source is not config.ArgsSource.TESTPATHS:
        return
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    first = len(names) * int(process["workerid"].removeprefix("gw")) // int(process["workercount"])
    for name in names[first:] + names[:first]:
        # A file that cannot be imported, or says that it is to be skipped, is reported where pytest collects it.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)
