"""The process that speaks to Weights & Biases for one run. Its own, because their package starts threads and more
processes, and waits for its server without end: this one can be ended at any time.

It reads JSON lines: the first begins the run, then rows, then the end. It writes one line: the run's address, or what
went wrong. It imports nothing of this project.
"""

import importlib
import json
import os
import sys
from typing import Any

_STEP = "global_step"


def main() -> int:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what their package prints is no answer

    def say(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    run_settings = json.loads(sys.stdin.readline())
    try:
        run = _begin(run_settings)
        say({"url": run.url or ""})
        for line in sys.stdin:
            row = json.loads(line)
            if "figures" in row:
                run.log({**row["figures"], _STEP: row["step"]})
            if "end" in row:
                run.summary.update(row["summary"])
                run.finish(exit_code=1 if row["end"] == "failed" else 0)
                say({"done": True})
                return 0
    except Exception as error:  # of whatever kind their package raises
        say({"problem": " ".join(str(error).split()) or type(error).__name__})
    # Without its end the run stays open. An orderly exit would wait for the server.
    os._exit(1)


def _begin(run_settings: dict[str, Any]) -> Any:
    wandb: Any = importlib.import_module("wandb")
    if run_settings["token"]:
        wandb.login(key=run_settings["token"], host=run_settings["address"] or None, relogin=True)
    run = wandb.init(
        entity=run_settings["entity"] or None,
        project=run_settings["project"],
        id=run_settings["job_id"],
        resume="allow",
        name=run_settings["name"],
        config=run_settings["parameters"],
        tags=run_settings["tags"],
        settings=wandb.Settings(
            console="off", silent=True, x_disable_stats=True, disable_git=True, disable_code=True
        ),
    )
    run.define_metric("*", step_metric=_STEP)
    return run


if __name__ == "__main__":
    sys.exit(main())
