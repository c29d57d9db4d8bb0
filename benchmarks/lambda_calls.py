"""A thousand invocations in flight from one process through boto3, on stub functions of an emulated account.

Two processes of its own: the emulator, whose functions answer after a given time without computing anything, and the
one that is measured, with LambdaPlatform in it and nothing else. `manage.py bench lambda_calls` starts both.
"""

import json
import math
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rig.figures import Figure

ROOT = Path(__file__).resolve().parent.parent
FEW, MANY = 100, 1000
_SUBMIT_AT_MOST_S = 5.0
_MEMORY_AT_MOST_MB = 300.0
_RATIO_AT_MOST = 1.1


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """`quick`: functions that take 5 s instead of 20; the ratio then is no figure."""
    seconds = 5.0 if quick else 20.0
    with tempfile.TemporaryFile() as errors:
        emulator = subprocess.Popen(
            [sys.executable, "-m", "emulator", "aws", "--concurrency", "2000"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert emulator.stdin is not None
        assert emulator.stdout is not None
        try:
            values = json.loads(emulator.stdout.readline())
            timed = _measured(values, seconds)
            most_mb = _most_memory_mb(emulator.pid)
        finally:
            emulator.stdin.close()
            emulator.wait()
            emulator.stdout.close()
    yield from _figures(timed, seconds)
    yield Figure("the emulator's own memory at its most", most_mb, "MB")


def _figures(timed: dict[str, Any], seconds: float) -> Iterator[Figure]:
    few, many = timed["few"], timed["many"]
    each_s = many["cpu_s"] / MANY
    yield Figure(f"{MANY} calls handed over", many["submitted_s"], "s", at_most=_SUBMIT_AT_MOST_S)
    yield Figure(
        f"{MANY} calls have reached their functions", many["all_out_s"], "s", at_most=_SUBMIT_AT_MOST_S
    )
    yield Figure(
        f"memory with {MANY} in flight", timed["memory_mb"], "MB", at_most=_MEMORY_AT_MOST_MB, data=timed
    )
    yield Figure("CPU of one call on this side", 1000.0 * each_s, "ms")
    yield Figure(f"{FEW} calls of {seconds:g} s, all back", few["took_s"], "s")
    allowed_s = _RATIO_AT_MOST * few["took_s"] + many["cpu_s"]
    yield Figure(f"{MANY} calls of {seconds:g} s, all back", many["took_s"], "s", at_most=round(allowed_s, 2))


def _measured(values: dict[str, Any], seconds: float) -> dict[str, Any]:
    request = json.dumps({"values": values, "seconds": seconds})
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.lambda_calls"],
        cwd=ROOT,
        input=request,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=600,
    )
    timed: dict[str, Any] = json.loads(done.stdout)
    return timed


# What follows runs in the measured process.


def main() -> None:
    request = json.loads(sys.stdin.read())
    values, seconds = request["values"], request["seconds"]
    from cloud.accounts.connections import AwsConnection, AwsKeys
    from cloud.platforms.aws_lambda import LambdaOptions, LambdaPlatform

    keys = AwsKeys(values["access_key_id"], values["secret_access_key"])
    connection = AwsConnection(keys, endpoint_url=values["endpoint"])
    trajectory, weights = _real_result()
    _set_up(connection, values["actor_role"])
    timed: dict[str, Any] = {"base_mb": _memory_mb("VmRSS")}
    for name, count in (("few", FEW), ("many", MANY)):
        _desk(
            values["endpoint"], "park", function="starling-actor-1769mb", seconds=seconds, result=trajectory
        )
        platform = LambdaPlatform(LambdaOptions(), connection.open(), learner=_NoLearner)
        timed[name] = _timed(platform, weights, count, lambda: _in_flight(values["endpoint"]))
        platform.close()
    timed["memory_mb"] = _memory_mb("VmHWM")
    print(json.dumps(timed))


class _NoLearner:
    """Nothing is learned here, so that what is measured are the calls and not the import of torch."""

    def __init__(self, deliver: Any) -> None:
        pass

    def enforce_limit(self) -> None:
        pass

    def seconds_to_limit(self) -> float:
        return math.inf

    def close(self) -> None:
        pass


def _timed(platform: Any, weights: bytes, count: int, in_flight: Any) -> dict[str, float]:
    """Hand over so many calls, wait until all are out, then until all are back."""
    import time

    ref = platform.publish(0, weights)
    cpu_s, began_s = time.process_time(), time.monotonic()
    for number in range(count):
        platform.submit(_call(f"c{number}", ref))
    submitted_s = time.monotonic() - began_s
    while in_flight() < count:
        early = platform.next(0.0)
        assert early is None, f"a call ended before all were out: {early.status} {early.reason}"
        time.sleep(0.1)
    all_out_s = time.monotonic() - began_s
    done = 0
    while done < count:
        outcome = platform.next(60.0)
        assert outcome is not None
        assert outcome.status == "done", outcome.reason
        done += 1
    took_s = time.monotonic() - began_s
    return {
        "submitted_s": submitted_s,
        "all_out_s": all_out_s,
        "took_s": took_s,
        "cpu_s": time.process_time() - cpu_s,
    }


def _call(name: str, ref: Any) -> Any:
    from training.calls.rollout import RolloutRequest
    from training.engine.messages import Call
    from training.rl.environments.model import EnvironmentSpec

    request = RolloutRequest(
        environment=EnvironmentSpec(id="Hopper-v5"), environments=1, steps=256, slot=0, discount=0.99
    )
    return Call(
        id=name,
        request=request,
        where="actor",
        round_no=1,
        seed=7,
        deadline_s=60.0,
        memory_mb=1769,
        weights=ref,
    )


def _real_result() -> tuple[dict[str, object], bytes]:
    """A trajectory of 256 steps of Hopper that was really sampled, and the weights that sampled it.

    Made in a child, which needs torch for the weights; the measured process does not load it.
    """
    program = (
        "import base64, json, sys\n"
        "from benchmarks.lambda_calls import _call\n"
        "from emulator.aws.stub_functions import encode_result\n"
        "from training.rl.environments.making import spaces_of\n"
        "from training.functions.body import WarmCache\n"
        "from training.functions.run import execute\n"
        "from training.spec import TrainingSpec\n"
        "call = _call('c', None)\n"
        "spec = TrainingSpec()\n"
        "state = spec.algorithm.initial_state(spec.network, spaces_of(call.request.environment), seed=1)\n"
        "weights = state.actor_weights(spec.network)\n"
        "result = encode_result(execute(call, weights, WarmCache()))\n"
        "print(json.dumps([result, base64.b64encode(weights).decode()]))\n"
    )
    import base64

    made = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True
    )
    result, weights = json.loads(made.stdout)
    return result, base64.b64decode(weights)


def _set_up(connection: Any, role: str) -> None:
    from cloud.actor.bundle import thin
    from cloud.platforms.aws.functions import deploy, function_name

    deploy(connection.open().client("lambda"), function_name(connection.prefix, 1769), thin(), role, 1769)


def _desk(endpoint: str, name: str, **given: Any) -> Any:
    request = urllib.request.Request(f"{endpoint}/_emulator/{name}", json.dumps(given).encode())
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def _in_flight(endpoint: str) -> int:
    return int(_desk(endpoint, "state")["in_flight"])


def _memory_mb(line: str) -> float:
    return _read_mb("self", line)


def _most_memory_mb(pid: int) -> float:
    return _read_mb(str(pid), "VmHWM")


def _read_mb(process: str, line: str) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    kilobytes = next(one for one in status.splitlines() if one.startswith(f"{line}:")).split()[1]
    return int(kilobytes) / 1024


if __name__ == "__main__":
    main()
