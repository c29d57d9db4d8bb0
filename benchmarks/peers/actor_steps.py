"""An actor's body, its bare steps and its policy, as calibration measures them: stepped natively or by Gymnasium."""

import json
import sys
from typing import Any

import training.rl.environments.making as making
from cloud.timing.calibration.parts import actor


def main(options: dict[str, Any]) -> dict[str, Any]:
    if not options["native"]:
        vars(making)["recognise"] = lambda made: (None, "this is the measurement of what was before")
    return actor.measure(options)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
