"""What is said of a sweep that cannot be launched."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.factories import make_spec
from tests.webapp.comparing.test_sweeps import RATE
from webapp.comparing.sweeps import Sweep, SweepRefused, axes_from


def test_a_refusal_calls_a_field_by_its_title() -> None:
    titles = {RATE: "Algorithm: Learning rate"}
    ranged = axes_from([(RATE, "1e-4..1e-2")], titles)
    sweep = Sweep(
        base=make_spec(),
        axes=tuple(ranged),
        way="grid",
        points=6,
        seeds=2,
        limit_usd=Decimal(10),
        name="Rates",
    )
    with pytest.raises(SweepRefused) as refused:
        sweep.specs()
    assert str(refused.value) == (
        "Algorithm: Learning rate: a grid needs its values one by one, such as 0.001, 0.0003."
    )
