"""Threads that step copies beside the calling one. A barrier in the work makes sure that both take part."""

from __future__ import annotations

from threading import Barrier, Thread, current_thread

import pytest

from training.rl.environments.native.threads import share

_PATIENCE_S = 60.0


def test_one_helper_does_what_is_shared_again_and_again() -> None:
    both, seen = Barrier(2), []

    def work() -> None:
        seen.append(current_thread())
        both.wait(_PATIENCE_S)

    for _ in range(20):
        share(work, threads=2)
    assert len(seen) == 40
    assert len(set(seen)) == 2
    assert current_thread() in seen


def test_callers_at_the_same_time_have_helpers_of_their_own() -> None:
    everyone, seen = Barrier(4), []

    def work() -> None:
        seen.append(current_thread())
        everyone.wait(_PATIENCE_S)

    callers = [Thread(target=share, args=(work, 2)) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(set(seen)) == 4


@pytest.mark.parametrize("from_helper", [True, False])
def test_what_either_thread_raises_is_raised_after_both_are_done(from_helper: bool) -> None:
    caller, both, done = current_thread(), Barrier(2), []

    def work() -> None:
        both.wait(_PATIENCE_S)
        if (current_thread() is not caller) == from_helper:
            raise ValueError("a wrong step")
        done.append(1)

    with pytest.raises(ValueError, match="a wrong step"):
        share(work, threads=2)
    assert done == [1]
    share(lambda: done.append(2), threads=1)
    assert done == [1, 2]
