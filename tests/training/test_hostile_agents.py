"""Weights of schedulers in specs: anyone may write them, so nothing is believed of them and little memory is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tests.memory import memory_peak
from training.engine.codec import encode
from training.scaling.agent_weights import as_text
from training.scaling.learned import Learned
from training.scaling.siren import Siren

BOTH = pytest.mark.parametrize("policy", [Siren, Learned])
PLAIN: dict[str, Any] = {
    "version": 1,
    "action_counts": [],
    "pictures": False,
    "activation": "tanh",
    "layers": [["b", None, None]],
    "macs": 36,
    "b.weight": np.zeros((4, 9), np.float32),
    "b.bias": np.zeros(4, np.float32),
}


def written(**changes: Any) -> str:
    return as_text(encode({**PLAIN, **changes}, compress=True))


def test_the_weights_that_are_changed_below_are_an_agents() -> None:
    assert Siren(weights=written()).decision_macs == 36
    assert Siren(weights=written(macs=0)).decision_macs == 0, "early versions wrote no number"


@BOTH
def test_small_weights_that_unpack_to_much_are_refused_before_they_do(policy: type[Any]) -> None:
    wide = 2_000_000
    weights = written(
        layers=[["a", None, None], ["b", None, None]],
        **{"a.weight": np.zeros((wide, 9), np.float32), "a.bias": np.zeros(wide, np.float32)},
    )
    assert len(weights) < 100_000
    with memory_peak() as peak, pytest.raises(ValidationError, match="not the weights"):
        policy(weights=weights)
    assert peak.grown_bytes < 20 * 2**20


@BOTH
@pytest.mark.parametrize(
    "changes",
    [
        {"b.weight": None},
        {"b.weight": "none"},
        {"b.weight": np.zeros((4, 9, 2), np.float32)},
        {"b.bias": None},
        {"b.bias": np.zeros((4, 4), np.float32)},
        {"layers": []},
        {"layers": None},
        {"layers": [["b"]]},
        {"layers": [["b", None, [2**63, 2]]]},
        {"layers": [["b", None, [0, 0]]]},
        {"layers": [["b", [1, 2, 3, 4], None]]},
        {"action_counts": None},
        {"action_counts": ["a"]},
        {"pictures": True},
        {"observation_mean": np.zeros(3), "observation_scale": np.ones(9)},
    ],
)
def test_weights_of_no_agent_are_refused_in_words(policy: type[Any], changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"not the weights|was trained to|decides only"):
        policy(weights=written(**changes))


@pytest.mark.parametrize("macs", [-36, 37, 10**18, "36", None, 36.0, True])
def test_the_multiplications_that_a_decision_is_paid_by_are_the_networks_own(macs: object) -> None:
    with pytest.raises(ValidationError, match="not the weights"):
        Siren(weights=written(macs=macs))
