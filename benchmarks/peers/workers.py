"""Sampling only, through the local platform: steps a second with one worker and with two, in interleaved pairs."""

import json
import sys
import time
from typing import Any

from benchmarks.peers.calls import Part
from benchmarks.peers.cases import ENVIRONMENTS
from cloud.platforms.local import LocalOptions, LocalPlatform

_FRAGMENTS = 24
_WARM_UP = 8


class _Side:
    """A platform whose slots go on from call to call."""

    def __init__(self, part: Part, workers: int) -> None:
        self._part = part
        self.platform = LocalPlatform(LocalOptions(workers=workers))
        self._part.reference = self.platform.publish(0, part.weights)
        self._states: dict[int, bytes | None] = dict.fromkeys(range(ENVIRONMENTS))
        self._serial = 0

    def steps_per_s(self, fragments: int) -> float:
        in_flight: dict[str, int] = {}
        left = fragments

        def submit(slot: int) -> None:
            self._serial += 1
            call = self._part.rollout(slot, self._serial, 1, self._states[slot])
            in_flight[call.id] = slot
            self.platform.submit(call)

        began_s = time.perf_counter()
        for slot in range(ENVIRONMENTS):
            submit(slot)
            left -= 1
        while in_flight:
            outcome = self.platform.next(10.0)
            if outcome is None:
                continue
            if outcome.status != "done":
                raise RuntimeError(outcome.reason)
            slot = in_flight.pop(outcome.call_id)
            self._states[slot] = outcome.slot_state
            if left:
                submit(slot)
                left -= 1
        return fragments * self._part.case.steps / (time.perf_counter() - began_s)


def main(settings: dict[str, Any]) -> dict[str, Any]:
    sides = [_Side(Part(settings), workers) for workers in (1, 2)]
    try:
        for side in sides:
            side.steps_per_s(_WARM_UP)
        pairs = [[side.steps_per_s(_FRAGMENTS) for side in sides] for _ in range(settings["pairs"])]
    finally:
        for side in sides:
            side.platform.close()
    return {"pairs": pairs}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
