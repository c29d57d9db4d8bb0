"""What is said of gradients that are refused, word by word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.training.gradient_calls import make_gradient, with_changes
from tests.training.test_gradient_checks import HOSTILE
from training.calls import KINDS
from training.calls.gradient import GradientRequest
from training.calls.kind import BadAnswer
from training.engine.codec import decode

GRADIENTS = {
    "not a number": "the gradient of policy.0.weight has numbers that are not finite",
    "infinite": "the gradient of policy.0.bias has numbers that are not finite",
    "another shape": "the gradient of policy.0.weight has another shape or type than the parameters ask for",
    "another type": "the gradient of policy.0.weight has another shape or type than the parameters ask for",
    "whole numbers": "the gradient of policy.0.bias has another shape or type than the parameters ask for",
    "no array": "the gradient of policy.0.bias has another shape or type than the parameters ask for",
    "one too few": "the gradient lacks or adds: g:policy.0.weight",
    "one too many": "the gradient lacks or adds: g:policy.9.weight",
    "another version": "a gradient of version 1, not of 0",
    "a version that is true": "a gradient of version False, not of 0",
    "another pass": "the gradient is of another pass",
    "more samples": "samples is 121; the trajectories have 120",
    "samples counted twice": "env_steps is 120; the trajectories have 0",
    "the last pass too early": "the gradient is of another pass",
    "moments too early": "the gradient has moments of other samples than its own",
    "a longer step": "the gradient asks for a step 2.0 times as long",
    "a report that is not finite": "the gradient's report has numbers that are not finite, or too large",
    "a report of more": "the gradient's report is not one of ours",
    "importance of less": "the gradient's importance is not one of ours",
    "no divergence": "inf is no divergence",
    "a number beyond all sense": "the gradient of policy.0.bias has numbers above 1e+15",
    "a report beyond all sense": "the gradient's report has numbers that are not finite, or too large",
    "a divergence beyond all sense": "1e+300 is no divergence",
    "samples that count less than nothing": "samples count -1.0 times; at most 4.85165e+08 is possible",
    "samples that count nothing": "samples count 0.0 times; at most 4.85165e+08 is possible",
    "samples that count more than any ratio": "samples count 1000000000.0 times; at most 4.85165e+08 is possible",
    "a share of more than all": "the gradient's importance has shares that are none",
    "a pass that is true": "the gradient is of another pass",
    "words for a device": "the gradient names no device",
    "more bytes": "the result cannot be read: the body would have 8036620 bytes; at most 108367 are allowed",
}


@pytest.mark.parametrize(
    ("change", "said"), [pytest.param(case.values[1], GRADIENTS[case.id], id=case.id) for case in HOSTILE]
)
def test_gradients(change, said):
    call, result = make_gradient()
    with pytest.raises(BadAnswer) as refused:
        KINDS["gradient"].check(call, call.request, with_changes(result, change(decode(result.payload))))
    assert str(refused.value) == said


def test_what_later_passes_need():
    call, result = make_gradient()
    with pytest.raises(BadAnswer) as refused:
        KINDS["gradient"].check(call, call.request, replace(result, slot_state=None))
    assert str(refused.value) == "the pass lacks or adds what later passes need"


def test_a_pass_that_there_is_not():
    request = make_gradient()[0].request
    with pytest.raises(ValueError, match=r"pass 11 is not one of 10"):
        GradientRequest.model_validate({**request.model_dump(), "pass_no": 11})
