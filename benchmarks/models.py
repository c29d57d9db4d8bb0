"""How fast the models of supervised training learn in numpy, beside torch and scikit-learn: all on one core, in turn.

Times are of the processor, the best of several epochs, so other processes disturb them little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from rig.figures import Figure
from training.data.dataset import write_dataset
from training.data.glyphs import draw_glyphs
from training.data.manifest import Manifest
from training.data.rows import Rows
from training.data.shipped import SHIPPED
from training.data.store import MemoryStore, read_rows
from training.supervised.models.click_through import ClickThrough
from training.supervised.models.lenet import KERNEL, PAD, LeNet
from training.supervised.models.logistic import LogisticRegression
from training.supervised.models.model import Model
from training.supervised.models.optimisers import SGD

_MINIBATCH = 64


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """Yield rows a second of each model, and how many times torch's or scikit-learn's that is."""
    import torch

    repeats = 3 if quick else 10
    torch.set_num_threads(1)
    with threadpool_limits(1):
        manifest, rows = _stored("digits")
        yield from _figures(
            "logistic regression, digits",
            len(rows),
            _fastest(_epoch(LogisticRegression(), manifest, rows), repeats),
            torch=_fastest(_torch_epoch(torch.nn.Linear(64, 10), rows, (64,)), repeats),
            scikit_learn=_fastest(_scikit_learn_epoch(rows.features.values, rows), repeats),
        )
        manifest, rows = _stored("glyphs_small")
        yield from _figures(
            "LeNet, glyphs",
            len(rows),
            _fastest(_epoch(LeNet(), manifest, rows), repeats),
            torch=_fastest(_torch_epoch(_torch_lenet(), rows, (1, 28, 28)), repeats),
        )
        manifest, rows = _stored("flights")
        yield from _figures(
            "click-through, flights",
            len(rows),
            _fastest(_epoch(ClickThrough(), manifest, rows), repeats),
            scikit_learn=_fastest(_scikit_learn_epoch(_as_scipy(rows), rows), repeats),
        )
    start = time.process_time()
    draw_glyphs(1000)
    yield Figure("glyphs drawn a second", 1000 / (time.process_time() - start), "")


def _figures(what: str, rows: int, ours_s: float, **others_s: float) -> Iterator[Figure]:
    yield Figure(f"{what}: rows learned a second", rows / ours_s, "")
    for name, seconds in others_s.items():
        promise = 0.7 if name == "torch" else None
        yield Figure(
            f"{what}: times the speed of {name.replace('_', '-')}", seconds / ours_s, "", at_least=promise
        )


def _stored(key: str) -> tuple[Manifest, Rows]:
    store = MemoryStore()
    manifest = write_dataset(SHIPPED[key].make(), store)
    return manifest, read_rows(store, manifest.ranges(0, manifest.rows))


def _fastest(run: Callable[[], Any], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return min(seconds)


def _epoch(model: Model, manifest: Manifest, rows: Rows) -> Callable[[], Any]:
    optimiser, parameters = SGD(learning_rate=0.1), model.initial_parameters(manifest.shape, 0)
    begun = optimiser.begin(parameters)

    def epoch() -> None:
        learned, state = parameters, begun
        for begin in range(0, len(rows), _MINIBATCH):
            _, gradient = model.loss_and_gradient(learned, rows.between(begin, begin + _MINIBATCH))
            learned, state = optimiser.step(learned, gradient, state)

    return epoch


def _torch_lenet() -> Any:
    from torch import nn

    return nn.Sequential(
        *(nn.Conv2d(1, 6, KERNEL, padding=PAD), nn.Tanh(), nn.AvgPool2d(2)),
        *(nn.Conv2d(6, 16, KERNEL), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10)),
    )


def _torch_epoch(network: Any, rows: Rows, shape: tuple[int, ...]) -> Callable[[], None]:
    import torch
    from torch.nn import functional

    numbers = torch.from_numpy(rows.features.numbers().reshape(-1, *shape).copy())
    targets = torch.from_numpy(rows.targets.astype(np.int64))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, weight_decay=1e-4)

    def epoch() -> None:
        for begin in range(0, len(numbers), _MINIBATCH):
            part = slice(begin, begin + _MINIBATCH)
            optimiser.zero_grad()
            loss: Any = functional.cross_entropy(network(numbers[part]), targets[part])
            loss.backward()
            optimiser.step()

    return epoch


def _scikit_learn_epoch(features: Any, rows: Rows) -> Callable[[], Any]:
    """Its SGD takes a step a row, and learns each of several classes against all others."""
    from sklearn.linear_model import SGDClassifier

    classifier = SGDClassifier(loss="log_loss", alpha=1e-4)
    classifier.partial_fit(features, rows.targets, classes=np.unique(rows.targets))
    return lambda: classifier.partial_fit(features, rows.targets)


def _as_scipy(rows: Rows) -> Any:
    from scipy.sparse import csr_matrix

    features = rows.features
    return csr_matrix((features.values, features.places, features.offsets), shape=(len(rows), features.width))
