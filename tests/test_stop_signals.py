"""A signal that asks a process to stop may come at any moment, also while the main thread holds a lock."""

from rig.servers import printed_by

# Every call of a function of `threading` in the main thread is a moment, those with a lock held among them.
_AT_EVERY_MOMENT = """
import os, signal, sys, threading

def at_every_moment(act):
    def trace(frame, event, argument):
        if frame.f_globals.get("__name__") == "threading":
            sys.settrace(None)
            act()
            sys.settrace(trace)
    sys.settrace(trace)
"""


def test_an_emulator_hears_of_its_end_at_any_moment_of_its_wait() -> None:
    program = f"""{_AT_EVERY_MOMENT}
from emulator.server import stop_requested
stopped = stop_requested()
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
at_every_moment(lambda: os.kill(os.getpid(), signal.SIGINT))
stopped.get()
print("stopped")
"""
    assert printed_by(program, PATH="/usr/bin:/bin") == "stopped"


def test_a_worker_may_be_asked_to_stop_while_it_is_asked() -> None:
    program = f"""{_AT_EVERY_MOMENT}
from webapp.processes import worker_stop
worker_stop.GONE_WITHIN_S = 0.0
stop = worker_stop.WorkerStop()
at_every_moment(stop.ask)
stop.ask()
sys.settrace(None)
assert stop.requested
stop.carry_out(end=lambda code: print("stopped", code))
"""
    assert printed_by(program, PATH="/usr/bin:/bin") == "stopped 0"
