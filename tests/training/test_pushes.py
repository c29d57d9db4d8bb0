"""Pushes travel whole or sparse, whichever is shorter; a filter carries over what it holds back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.shipped_once import data_from
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import descent
from training.data.dataset import write_dataset
from training.data.generated import sparse_table
from training.data.store import MemoryStore
from training.engine.messages import RoundFinished
from training.supervised import pushes

SHAPES = {"weight": (1000, 1), "bias": (1,)}


def push(places: int) -> pushes.Push:
    weight = np.zeros((1000, 1), np.float32)
    weight[:places, 0] = np.arange(1, places + 1)
    gradient = {"weight": weight, "bias": np.ones(1, np.float32)}
    return pushes.Push(3, 7, 64, 2, 0.5, gradient)


@pytest.mark.parametrize(("places", "most_bytes"), [(0, 250), (10, 330), (400, 3450), (900, 4300)])
def test_a_push_has_the_bytes_of_its_numbers_and_comes_back_as_it_was(places: int, most_bytes: int) -> None:
    data = push(places).encode()
    assert len(data) <= most_bytes <= pushes.most_bytes(SHAPES) + 100
    back = pushes.Push.decode(data, SHAPES)
    assert (back.version, back.slice_no, back.rows, back.steps, back.loss) == (3, 7, 64, 2, 0.5)
    for name, array in push(places).gradient.items():
        assert (back.gradient[name] == array).all()


def test_what_the_filter_holds_back_is_carried_over_and_nothing_is_lost() -> None:
    gradient = {"weight": np.array([1.0, 0.1, -3.0, 0.0], np.float32)}
    parameters = {"weight": np.array([10.0, 10.0, 1.0, 0.0], np.float32)}
    sent, carried = pushes.filtered(gradient, parameters, learning_rate=0.5, significance=0.05)
    assert sent["weight"].tolist() == [0.0, 0.0, -3.0, 0.0]
    assert carried["weight"].tolist() == pytest.approx([1.0, 0.1, 0.0, 0.0])
    again, _ = pushes.filtered(
        {"weight": gradient["weight"] + carried["weight"]}, parameters, learning_rate=0.5, significance=0.05
    )
    assert again["weight"].tolist() == [2.0, 0.0, -3.0, 0.0]
    assert pushes.decode_carried(pushes.encode_carried(carried), {"weight": (4,)})["weight"][0] == 1.0


@pytest.fixture
def clicks() -> Iterator[str]:
    """The hash of a small sparse data set."""
    store = MemoryStore()
    with data_from(store):
        yield write_dataset(sparse_table(2000, 12), store).hash


def test_filter_and_local_steps_push_fewer_bytes_on_sparse_data(clicks: str) -> None:
    def pushed(**changes: object) -> int:
        spec = descent(
            data=clicks,
            minibatch=50,
            model={"kind": "click_through", "l2": 0.0},
            stop={"rounds": 1},
            evaluation={"every_rounds": 10},
            **changes,
        )
        (report,) = [
            event.report for event in events_of(spec, InlinePlatform()) if isinstance(event, RoundFinished)
        ]
        return int(report.figures.pushed_bytes)

    plain = pushed()
    assert pushed(local_steps=8) < 0.5 * plain
    assert pushed(significance=0.5) < plain
