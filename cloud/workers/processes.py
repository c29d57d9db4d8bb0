"""Processes that cannot outlive their parent.

`python -m cloud.workers.processes -- command ...` becomes that command (same process id), after the kernel has been
set to kill it when its parent dies, also by `kill -9`. The wrapper exists because doing this between fork and exec
(`preexec_fn`) is unsafe in a program with threads.

This works only on Linux. Elsewhere the command runs, but survives an abrupt death of its parent.

The kernel watches the *thread* that started the child: start children from a thread that lives as long as they should.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_USAGE = "usage: python -m cloud.workers.processes [--parent PID] -- command ..."


def die_with_parent(parent_pid: int | None = None) -> None:
    """Have the kernel kill this process when its parent dies; survives exec, not fork.

    `parent_pid` closes the race with a parent that died before this call: if this process already has another parent,
    it ends at once. Call it first in a child.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if parent_pid is not None and os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)


def bound_to_this_process(command: Sequence[str]) -> list[str]:
    """Return a command for `subprocess.Popen` that runs `command` and dies with the calling process."""
    # By path, not -m, so that it works from any folder; -P keeps this folder out of the import path.
    return [sys.executable, "-P", __file__, "--parent", str(os.getpid()), "--", *command]


def main(arguments: Sequence[str]) -> None:
    """Bind this process to its parent, then become the command after `--`."""
    before, separator, command = _split(arguments)
    if not separator or not command:
        raise SystemExit(_USAGE)
    parent_pid = _parent_pid(before)
    # A process in the background of a shell script ignores Ctrl-C; the command may decide that for itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with_parent(parent_pid)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        raise SystemExit(f"cannot start {command[0]}: {error.strerror}") from error


def _split(arguments: Sequence[str]) -> tuple[list[str], bool, list[str]]:
    words = list(arguments)
    if "--" not in words:
        return words, False, []
    at = words.index("--")
    return words[:at], True, words[at + 1 :]


def _parent_pid(words: Sequence[str]) -> int | None:
    match list(words):
        case []:
            return None
        case ["--parent", pid] if pid.isdecimal():
            return int(pid)
        case _:
            raise SystemExit(_USAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
