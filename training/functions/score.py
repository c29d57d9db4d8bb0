"""Judging parameters by held-out rows."""

from __future__ import annotations

from training.calls.score import ScoreRequest
from training.engine.codec import encode
from training.engine.messages import Call
from training.engine.reports import Usage
from training.functions.body import Result, WarmCache
from training.functions.rows import bytes_of, memory_mb, rows_of_call
from training.supervised.descent_state import parameters_in
from training.supervised.models.lenet import LeNet
from training.supervised.models.metrics import judge
from training.supervised.models.model import parameter_count

_COPIES = 2


def score(call: Call, request: ScoreRequest, weights: bytes, warm_cache: WarmCache) -> Result:
    """Return each row's loss and class, and each class's probability."""
    rows = rows_of_call(call, request.ranges, warm_cache)
    _, parameters = parameters_in(weights)
    payload = encode(judge(request.model, parameters, rows).document())
    usage = Usage(
        minibatches=1,
        samples=len(rows),
        macs=request.model.macs(request.shape),
        pictures=isinstance(request.model, LeNet),
        fetched_bytes=0 if call.inputs else bytes_of(rows),
        most_memory_mb=memory_mb(rows, parameter_count(parameters), _COPIES),
    )
    return Result(payload, None, usage)
