"""Untrained policies: what was stored of 20 seeds, and which targets they reach."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from research.calculations import untrained_policies
from research.calculations.untrained_policies import best_held, rows, targets_in_use
from research.experiment import experiment_names, find_experiment
from research.runs.seed_run import drawn_returns, untrained_returns
from webapp.comparing.papers.figures import RESULTS


def held_by_hand(returns: list[float], meter: str) -> float:
    """The best reading of three episodes, or in training the worst of the best three in a row."""
    readings = [sum(returns[at : at + 3]) / 3 for at in range(0, len(returns), 3)]
    if meter == "evaluation":
        return max(readings)
    return max(min(readings[at : at + 3]) for at in range(len(readings) - 2))


def test_no_untrained_policy_of_20_reaches_a_target_but_the_one_that_is_known_to_need_no_skill() -> None:
    reached = {}
    for asked in targets_in_use():
        own = [row for row in rows() if row["environment"] == asked.environment]
        assert len({row["seed"] for row in own}) == len(own) == 20
        held = [held_by_hand(row[asked.meter], asked.meter) for row in own]
        reached[asked[:3]] = sum(one >= asked.target for one in held)
    without_skill = ("HalfCheetah-v5", "training", -345.0)
    assert reached.pop(without_skill) > 0
    assert set(reached.values()) == {0}
    document = json.loads((RESULTS / "minionsrl_table2.json").read_text())
    (row,) = [row for row in document["skill"] if (row["environment"], row["meter"]) == without_skill[:2]]
    assert row["skilled"] is False


def test_every_target_of_every_experiment_is_among_them_with_what_the_report_says() -> None:
    asked = {
        (environment, meter, target)
        for name in experiment_names()
        for meter, targets in (
            ("evaluation", find_experiment(name).targets),
            ("training", find_experiment(name).training_targets),
        )
        for environment, target in targets.items()
        if environment in {one.environment for one in find_experiment(name).settings}
    }
    assert {one[:3] for one in targets_in_use()} == asked
    (table,) = json.loads((RESULTS / "untrained_policies.json").read_text())["tables"]
    stored = {tuple(row[:3]) for row in table["rows"]}
    assert stored == asked, "a target changed: run `manage.py papers report untrained_policies`"
    assert all(row[4] == 20 for row in table["rows"])


def test_seeds_are_neither_judged_nor_pilots() -> None:
    seeds = {
        seed for name in experiment_names() for one in find_experiment(name).settings for seed in one.seeds
    }
    assert not seeds & set(untrained_policies.SEEDS)


def test_what_is_stored_is_what_these_policies_play() -> None:
    row = next(row for row in rows() if row["environment"] == "CartPole-v1")
    spec = untrained_policies.spec_of("CartPole-v1", row["seed"])
    first = 2_000_000_000 + row["seed"] * 10_000
    assert untrained_returns(spec, [first, first + 1])[0] == row["evaluation"][:2]
    assert drawn_returns(spec, 5) == row["training"][:5]


@pytest.mark.parametrize(("meter", "held"), [("evaluation", 5.0), ("training", 2.0)])
def test_what_a_policy_held_by_hand(meter: Any, held: float) -> None:
    """Readings of 1, 2, 5, 3 and 0: the best one, and the least of 2, 5 and 3."""
    assert best_held([one for one in (1.0, 2.0, 5.0, 3.0, 0.0) for _ in range(3)], meter) == held


def test_rows_are_not_made_twice(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "untrained" / "runs.jsonl"
    monkeypatch.setattr(untrained_policies, "ROWS", path)
    monkeypatch.setattr(untrained_policies, "SEEDS", (1, 2))
    monkeypatch.setattr(untrained_policies, "READINGS", 3)
    cart = [one for one in targets_in_use() if one.environment == "CartPole-v1"]
    monkeypatch.setattr(untrained_policies, "targets_in_use", lambda: cart)
    untrained_policies.run_missing()
    before = path.read_text()
    path.write_text(before.splitlines(keepends=True)[0])
    untrained_policies.run_missing()
    assert path.read_text() == before
    assert Counter(json.loads(line)["environment"] for line in before.splitlines()) == {"CartPole-v1": 2}
    (table,), statements = untrained_policies.compute(quick=False)
    assert [row[4] for row in table.rows] == [2.0, 2.0]
    assert len(statements) == 2
