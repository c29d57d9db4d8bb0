"""Trainings of Siren's loop are kept by what they are, and judged as their claims say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from research import siren_descent
from research.calculations import siren_descent as calculation
from research.reports.judging import undecided
from research.siren_descent import (
    ARMS,
    PILOT_SEED,
    SEEDS,
    DescentArm,
    kept,
    key_of,
    missing,
    rate_of,
    read_rows,
    run,
    wanted_pilots,
)

DIGITS, SYNCHRONOUS = DescentArm("digits"), DescentArm("digits", loop="bulk_synchronous")


def row(arm: DescentArm, seed: int, rate: float, loss: float, **more: Any) -> dict[str, Any]:
    figures = {"pushed_bytes": 1000, "seconds": 5.0, "usd": 0.001, "staleness": 3}
    return {
        "recipe": key_of(arm, seed, rate)[0],
        "seed": seed,
        "rate": rate,
        "losses": [2.0, loss],
        **figures,
        **more,
    }


def keyed(*rows: dict[str, Any]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(one["recipe"], one["seed"]): one for one in rows}


def pilots(arm: DescentArm, best: float) -> list[dict[str, Any]]:
    return [row(arm.tuned, PILOT_SEED, rate, 0.2 if rate == best else 0.3) for rate in arm.tuned.rates]


def test_a_rate_is_the_one_that_ended_lowest_on_a_seed_that_is_not_judged() -> None:
    assert PILOT_SEED not in SEEDS
    found = keyed(*pilots(DIGITS, 0.05))
    assert rate_of(DIGITS, found) == 0.05
    assert rate_of(DescentArm("digits", loop="fully_asynchronous"), found) == 0.05
    assert rate_of(SYNCHRONOUS, found) is None
    assert next(missing({})) == (DIGITS, PILOT_SEED, 0.05)
    assert next(missing(found)) == (DIGITS, 0, 0.05)


def test_rates_that_ended_alike_are_tried_on_more_seeds() -> None:
    """One that ended lowest on one seed may be near to diverging."""
    found = keyed(
        *(row(DIGITS, PILOT_SEED, rate, {0.2: 0.2, 0.4: 0.21}.get(rate, 0.3)) for rate in DIGITS.rates)
    )
    assert rate_of(DIGITS, found) is None
    assert wanted_pilots(DIGITS, found) == [(rate, seed) for rate in (0.2, 0.4) for seed in (101, 102)]
    assert not {101, 102} & set(SEEDS)
    more = keyed(
        *(row(DIGITS, seed, rate, 0.9 if rate == 0.2 else 0.22) for rate in (0.2, 0.4) for seed in (101, 102))
    )
    assert rate_of(DIGITS, {**found, **more}) == 0.4


def test_more_local_steps_have_a_smaller_rate_and_all_arms_can_be_run() -> None:
    usual, longer = (DescentArm("flights", local_steps=steps).document(0.1)["optimiser"] for steps in (2, 8))
    assert (usual["learning_rate"], longer["learning_rate"]) == (0.1, 0.025)
    keys = {key_of(arm, 0, 0.1) for arm in ARMS}
    assert len(keys) == len(ARMS)
    for arm in ARMS:
        assert arm.rates
        if arm.data == "digits":
            assert arm.job(3, 0.1).training.scaling.largest == arm.functions


def test_a_run_is_kept_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {**siren_descent._TRAININGS["digits"], "stop": {"rounds": 1}, "minibatch": 64}
    monkeypatch.setitem(siren_descent._TRAININGS, "digits", short)
    one = run(DIGITS, 3, 0.1)
    assert len(one["losses"]) == 1
    assert 0 < one["losses"][0] < 2.3
    assert one["pushed_bytes"] > 23 * 4 * 65 * 10
    assert one["seconds"] > 0 < one["usd"]
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(one) + "\n")
    assert kept(DIGITS, {**read_rows(path), **keyed(*pilots(DIGITS, 0.1))}) == {3: one}
    assert read_rows(tmp_path / "none") == {}


@pytest.mark.parametrize(("theirs", "word"), [(0.25, "holds"), (0.2, "does not hold"), (None, undecided(4))])
def test_within_one_percent_is_shown_and_refuted(theirs: float | None, word: str) -> None:
    seeds = SEEDS if theirs else SEEDS[:4]
    rows = [*pilots(DIGITS, 0.1), *pilots(SYNCHRONOUS, 2.0)]
    rows += [row(DIGITS, seed, 0.1, 0.25 + 0.0001 * seed) for seed in seeds]
    rows += [row(SYNCHRONOUS, seed, 2.0, (theirs or 0.25) + 0.0001 * seed) for seed in seeds]
    found = calculation._alike("They are alike.", [(DIGITS, SYNCHRONOUS)], keyed(*rows))
    assert found.verdict == word


def test_fewer_bytes_count_only_at_the_same_loss() -> None:
    flights, longer = DescentArm("flights"), DescentArm("flights", local_steps=8)
    rows = [*pilots(flights, 0.1), *pilots(longer, 0.2)]
    rows += [row(flights, seed, 0.1, 0.5 + 0.0001 * seed, pushed_bytes=6000) for seed in SEEDS]

    def verdict(loss: float, sent: int) -> str:
        own = [row(longer, seed, 0.2, loss + 0.0001 * seed, pushed_bytes=sent) for seed in SEEDS]
        return calculation._fewer(longer, keyed(*rows, *own)).verdict

    assert verdict(0.5, 1000) == "holds"
    assert verdict(0.5, 3000) == "does not hold"
    assert verdict(0.6, 1000) == "does not hold"


def test_a_machine_that_runs_is_compared_without_its_start() -> None:
    flights, machine = DescentArm("flights"), DescentArm("flights", functions=16, profile="one-machine")
    rows = pilots(flights, 0.1)
    rows += [row(flights, seed, 0.1, 0.5, seconds=8.0 + 0.01 * seed) for seed in SEEDS]
    rows += [row(machine, seed, 0.1, 0.5, seconds=62.0, usd=0.0155) for seed in SEEDS]

    def verdict(name: str, *, started: bool) -> tuple[str, str]:
        found = calculation._less("is less", name, keyed(*rows), started=started)
        return found.verdict, found.reason[:8]

    assert verdict("seconds", started=True) == ("holds", "−87.1 % ")
    assert verdict("seconds", started=False) == ("does not hold", "+301.0 %")
    assert verdict("usd", started=True)[0] == "holds"
    assert verdict("usd", started=False) == ("does not hold", "+100.0 %")


def test_without_runs_claims_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_rows, "__defaults__", (tmp_path / "none",))
    tables, statements = calculation.compute(quick=False)
    assert {one.verdict for one in statements} == {"open"}
    assert [len(one.rows) for one in tables] == [0, 0]
