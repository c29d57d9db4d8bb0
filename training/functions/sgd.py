"""Local steps of gradient descent, and the push that tells their sum."""

from __future__ import annotations

import math
import time

import numpy as np

from training.calls.sgd import SgdRequest
from training.data.rows import Rows
from training.engine.messages import Call
from training.engine.reports import Usage
from training.functions.body import Result, WarmCache
from training.functions.rows import bytes_of, memory_mb, rows_of_call
from training.supervised import pushes
from training.supervised.descent_state import parameters_in
from training.supervised.models.lenet import LeNet
from training.supervised.models.model import Parameters, parameter_count

_COPIES = 5


def sgd(call: Call, request: SgdRequest, weights: bytes, warm_cache: WarmCache) -> Result:
    """Return the push, and with a filter what is carried over, as the state of the slot."""
    worked_s, began_s = time.process_time(), time.perf_counter()
    rows = rows_of_call(call, request.ranges, warm_cache)
    fetched_s = time.perf_counter()
    version, parameters = parameters_in(weights)
    loss, gradient = _descend(request, parameters, rows)
    diverged = not abs(loss) <= pushes.NUMBER_LIMIT or not all(map(pushes.is_sound, gradient.values()))
    if diverged:
        loss, gradient = 0.0, {name: np.zeros_like(array) for name, array in parameters.items()}
    carried = None
    if request.significance > 0:
        gradient, carried = _filtered(call, request, parameters, gradient)
    computed_s = time.perf_counter()
    push = pushes.Push(version, request.slice_no, len(rows), request.steps, loss, gradient, diverged)
    payload = push.encode()
    state = None if carried is None else pushes.encode_carried(carried)
    usage = Usage(
        minibatches=request.steps,
        samples=len(rows),
        macs=request.model.macs(request.shape),
        pictures=isinstance(request.model, LeNet),
        fetched_bytes=0 if call.inputs else bytes_of(rows),
        fetch_s=fetched_s - began_s,
        compute_s=computed_s - fetched_s,
        push_s=time.perf_counter() - computed_s,
        processor_s=time.process_time() - worked_s,
        most_memory_mb=memory_mb(rows, parameter_count(parameters), _COPIES),
    )
    return Result(payload, state, usage)


def _descend(request: SgdRequest, parameters: Parameters, rows: Rows) -> tuple[float, Parameters]:
    """Return the mean loss of the rows, and the sum of the gradients of a step for each minibatch."""
    total, summed = 0.0, None
    for begin in range(0, len(rows), request.minibatch):
        part = rows.between(begin, begin + request.minibatch)
        loss, gradient = request.model.loss_and_gradient(parameters, part)
        total += loss * len(part)
        if not math.isfinite(total):
            break
        summed = gradient if summed is None else {name: summed[name] + gradient[name] for name in summed}
        if begin + request.minibatch < len(rows):
            parameters = {
                name: array - array.dtype.type(request.learning_rate) * gradient[name]
                for name, array in parameters.items()
            }
    return total / len(rows), summed or {}


def _filtered(
    call: Call, request: SgdRequest, parameters: Parameters, gradient: Parameters
) -> tuple[Parameters, Parameters]:
    if call.slot_state is not None:
        before = pushes.decode_carried(call.slot_state, pushes.shapes_of(request.model, request.shape))
        gradient = {name: slope + before[name] for name, slope in gradient.items()}
    return pushes.filtered(
        gradient, parameters, learning_rate=request.learning_rate, significance=request.significance
    )
