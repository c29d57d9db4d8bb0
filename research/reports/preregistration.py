"""What was declared of an experiment, and what it was priced with, as data beside its results: a page that shows them
needs nothing else, and still says what was meant when the declaration has changed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from cloud.money.billing.price_book import PriceBook
from research.experiment import Cell, Experiment
from research.pricing_targets import PRICING_TARGETS, place_of
from research.reports.outcomes import Summary
from training.base_model import FrozenModel

# Processor seconds of one run of 50 rounds, measured on the two shared cores that the first ones ran on.
_RUN_S = {"CartPole-v1": 12.0, "HalfCheetah-v5": 120.0, "Humanoid-v5": 300.0}
_OTHER_RUN_S = 180.0
_SENTENCES = ("title", "words", "source")


def declaration(experiment: Experiment) -> dict[str, Any]:
    """The words and choices of an experiment that stand on its page."""
    return {
        "title": experiment.title,
        "question": experiment.question,
        "oracle": experiment.oracle,
        "can_claim": experiment.can_claim,
        "beside": experiment.beside,
        "follows": experiment.follows,
        "endpoint_note": experiment.endpoint_note,
        "targets": experiment.targets,
        "training_targets": experiment.training_targets,
        "targets_note": experiment.targets_note,
        "differences": _differences(experiment),
        "venues": [
            {"name": name, **PRICING_TARGETS[name].model_dump()} for name in experiment.pricing_targets
        ],
    }


def _differences(experiment: Experiment) -> list[dict[str, Any]]:
    """What differs from the paper's hyperparameters, with the environments where it does."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for environment, one in experiment.differences():
        row = rows.setdefault((one.path, one.reason), {**one.model_dump(), "ours": [], "environments": []})
        for name, value in (("ours", one.ours), ("environments", environment)):
            if value not in row[name]:
                row[name].append(value)
    return [{**row, "ours": ", ".join(row["ours"])} for row in rows.values()]


def priced_with(experiment: Experiment) -> dict[str, Any]:
    """The price book, profiles and stacks that bills were computed with; a short hash tells one state from another."""
    if not experiment.pricing_targets:
        return {}
    pricing_targets = [PRICING_TARGETS[name] for name in experiment.pricing_targets]
    places = [place_of(name) for name in experiment.pricing_targets]
    return {
        "prices_as_of": PriceBook.load().as_of.isoformat(),
        "profiles": {
            one.profile: numbers_hash(at.profile) for one, at in zip(pricing_targets, places, strict=True)
        },
        "stacks": {
            target.stack: numbers_hash(at.stack) for target, at in zip(pricing_targets, places, strict=True)
        },
    }


def numbers_hash(numbers: FrozenModel) -> str:
    """A short name of the numbers and their ranges; sentences about them may change."""
    plain = _without_sentences(numbers.model_dump(mode="json"))
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:12]


def _without_sentences(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: _without_sentences(value) for key, value in document.items() if key not in _SENTENCES}
    return [_without_sentences(one) for one in document] if isinstance(document, list) else document


def processor_s(experiment: Experiment, cells: Sequence[Cell]) -> float:
    """About how long these runs take on one core."""
    return sum(experiment.run_s or _RUN_S.get(cell.environment, _OTHER_RUN_S) for cell in cells)


def rounds_by_arm(summary: Summary) -> dict[str, Any]:
    """Numbers of actors by round (the mean of complete seeds), and R by round of each seed where it was measured.

    Runs whose rows were thinned and those of a peer are left out.
    """
    actors: list[list[float]] = []
    ratios: dict[str, list[float | None]] = {}
    for outcome in summary.done:
        rounds = outcome.of("round")
        if not rounds or "actors" not in rounds[0] or rounds[-1]["round"] != len(rounds):
            continue
        actors.append([row["actors"] for row in rounds])
        found = [row.get("ratio") for row in rounds]
        if any(one is not None for one in found):
            ratios[str(outcome.cell.seed)] = [None if one is None else float(f"{one:.3g}") for one in found]
    shortest = min(map(len, actors), default=0)
    columns = zip(*(row[:shortest] for row in actors), strict=True)
    return {
        "actors_by_round": [round(sum(column) / len(column), 1) for column in columns],
        "ratio_by_round": ratios,
    }
