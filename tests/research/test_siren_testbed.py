"""Trainings of Siren's test bed are kept by what they are, and arms are compared for equal money."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from research import siren_testbed as testbed
from research import siren_testbed_runs as runs
from research.calculations import siren_testbed as calculation
from research.reports.judging import undecided
from research.siren_testbed import (
    PILOT_SEED,
    SEEDS,
    SERVERS,
    TestbedArm,
    TestbedWork,
    TrainingEnd,
    hourly_usd,
    kept,
    key_of,
    least_usd,
    library_arm,
    money_of,
    reached,
    read_rows_of,
    server,
    target_of,
    without_start,
)
from research.siren_testbed_runs import missing, run_missing, train

Found = dict[tuple[str, int], dict[str, Any]]


def row(
    arm: TestbedArm, seed: int, losses: list[float], seconds: float, usd: float, money: float = 0.0
) -> dict[str, Any]:
    """A training whose epochs all take as long. The rent of a server follows from its seconds."""
    epochs = range(1, len(losses) + 1)
    return {
        "recipe": key_of(arm, seed, money)[0],
        "seed": seed,
        "losses": losses,
        "seconds": [seconds * at for at in epochs],
        "usd": [usd * at for at in epochs],
        "scores": [float(seed)] * 32,
    }


def keyed(*rows: dict[str, Any]) -> Found:
    return {(one["recipe"], one["seed"]): one for one in rows}


def test_when_a_loss_is_reached_by_hand() -> None:
    one = row(server("flights", "m4.large"), 0, [0.7, 0.5, 0.4], 40.0, 0.001)
    assert reached(one, 0.5) == TrainingEnd(2, 80.0, 0.002, reached=True)
    assert without_start(reached(one, 0.5)) == TrainingEnd(2, 20.0, pytest.approx(0.0005), reached=True)
    assert reached(one, 0.3) == TrainingEnd(3, 120.0, pytest.approx(0.003), reached=False)


def test_servers_have_their_cores_and_their_price() -> None:
    """The slides' m4 machines cost $.1, .2 and .4 an hour; an address and a disk come on top."""
    assert [server("glyphs", sku).functions for sku in SERVERS] == [2, 4, 8, 8]
    on_top = hourly_usd("m4.large") - 0.1
    assert 0 < on_top < 0.03
    assert hourly_usd("m4.2xlarge") == pytest.approx(0.4 + on_top)


def test_what_others_need_is_trained_first() -> None:
    pilot = server("flights", "m4.large")
    wanted = list(missing({}))
    assert wanted[0] == (pilot, PILOT_SEED)
    assert {arm.money for arm, _ in wanted} == {""}
    servers = [
        row(server("flights", sku), seed, [0.6, 0.5], 70.0, 0.001) for sku in SERVERS for seed in SEEDS
    ]
    found = keyed(row(pilot, PILOT_SEED, [0.6, 0.5], 70.0, 0.001), *servers)
    assert target_of("flights", found) == 0.505
    started, running = (
        TestbedArm("flights", money="m4.xlarge", account=one) for one in ("started", "running")
    )
    assert money_of(started, found) == pytest.approx(140 / 3600 * hourly_usd("m4.xlarge"), rel=1e-4)
    assert money_of(running, found) == pytest.approx(80 / 3600 * hourly_usd("m4.xlarge"), rel=1e-4)
    assert money_of(started, keyed(*servers[:-1])) is None


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One server, one seed, and digits in place of glyphs."""
    training = {
        "data": "digits",
        "model": {"kind": "logistic"},
        "optimiser": {"kind": "sgd", "learning_rate": 0.1},
        "minibatch": 64,
    }
    works = {"glyphs": TestbedWork(training, 1, 2, 4)}
    monkeypatch.setattr(testbed, "FIXED", (2,))
    monkeypatch.setattr(testbed, "REHEARSALS", 800)
    monkeypatch.setattr(testbed, "SEEDS", (0,))
    monkeypatch.setattr(runs, "SEEDS", (0,))
    monkeypatch.setattr(testbed, "FIXED_SEEDS", (0,))
    monkeypatch.setattr(runs, "FIXED_SEEDS", (0,))
    monkeypatch.setattr(testbed, "SERVERS", ("m4.large",))
    monkeypatch.setattr(runs, "SERVERS", ("m4.large",))
    monkeypatch.setattr(calculation, "SERVERS", ("m4.large",))
    monkeypatch.setattr(testbed, "WORKS", works)
    monkeypatch.setattr(runs, "WORKS", works)
    monkeypatch.setattr(calculation, "WORKS", works)


@pytest.mark.slow
def test_a_test_bed_is_run_kept_and_compared(small: None, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    run_missing(path)
    rows = read_rows_of(path)
    assert list(missing(rows)) == []
    money, least = money_of(agent := TestbedArm("glyphs", money="m4.large"), rows), least_usd("glyphs", rows)
    assert money is not None
    assert least is not None
    own = kept(agent, rows)[0]
    assert own["money"] == money > least > 0
    assert len(own["losses"]) == len(own["functions"]) == 2
    assert all(1 <= functions <= 4 for functions in own["functions"])
    assert all(512 <= memory_mb <= 3008 for memory_mb in own["memory_mb"])
    assert own["usd"][0] < own["usd"][1]
    machine = kept(server("glyphs", "m4.large"), rows)[0]
    assert machine["seconds"][0] > 60
    assert machine["usd"][1] == pytest.approx(machine["seconds"][1] * hourly_usd("m4.large") / 3600, rel=1e-4)
    drawn = (calculation._times, calculation._figure, calculation._learning)
    assert [len(table(["glyphs"], rows).rows) for table in drawn] == [3, 3, 32]
    assert calculation._against(agent, rows).verdict == undecided(1)
    assert json.loads(path.read_text().splitlines()[0])["arm"] == "m4.large"


def test_for_equal_money_time_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that did not reach the loss, or not for its money, counts as twice its time."""
    pilot, agent = server("flights", "m4.large"), TestbedArm("flights", money="m4.large")
    rows = [row(pilot, PILOT_SEED, [0.6, 0.5], 70.0, 0.001)]
    rows += [row(server("flights", "m4.large"), seed, [0.6, 0.5], 70.0 + seed, 0.001) for seed in SEEDS]
    rows += [row(library_arm("flights"), seed, [0.5], 61.0 + 0.1 * seed, 0.001) for seed in SEEDS]
    money = money_of(agent, keyed(*rows))
    assert money is not None

    def verdict(seconds: float, share: float) -> tuple[str, str]:
        usd = share * money / 2
        own = [row(agent, seed, [0.6, 0.5], seconds + seed, usd, money) for seed in SEEDS]
        found = calculation._against(agent, keyed(*rows, *own))
        return found.verdict, found.reason

    assert verdict(20.0, 0.9)[0] == "holds"
    assert "in 5 of 5" in verdict(20.0, 0.9)[1]
    assert verdict(60.0, 1.1)[0] == "does not hold"
    assert "in 0 of 5" in verdict(60.0, 1.1)[1]
    assert verdict(20.0, 1.1)[0] == "does not hold", "sooner even when counted twice, but never for its money"
    assert verdict(90.0, 0.9)[0] == "does not hold"
    own = [row(agent, seed, [0.6, 0.5], 20.0 + seed, 0.45 * money, money) for seed in SEEDS]
    assert calculation._against_library(keyed(*rows, *own)).verdict == "holds"


def test_without_runs_claims_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calculation, "ROWS", tmp_path / "none")
    tables, statements = calculation.compute(quick=False)
    assert tables == []
    assert {one.verdict for one in statements} == {"open"}


@pytest.mark.slow
def test_scikit_learn_learns_from_the_same_rows() -> None:
    one = train(library_arm("flights"), 0, {})
    assert one["losses"][-1] < 0.53
    assert one["seconds"] == sorted(one["seconds"])
    assert one["seconds"][0] > 60
