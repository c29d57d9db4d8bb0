"""Targets that need no skill are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from research import skill
from research.experiment import experiment_names, find_experiment
from research.runs.run_file import run_file
from research.skill import Span, spans, target_rows, why_not_skilled
from tests.research.tiny_experiment import CART, TINY
from webapp.comparing.papers.figures import RESULTS


def write_pilots(data: Path, *, untrained: float, first: float, last: float) -> None:
    """Complete pilots of CartPole: 50 rounds that rise from `first` to `last` by both meters."""
    pilots = find_experiment("pilots")
    for cell in pilots.cells():
        if cell.environment != CART:
            continue
        file = run_file(pilots, data / "papers" / "pilots", cell)
        file.path.parent.mkdir(parents=True, exist_ok=True)
        rows: list[dict[str, Any]] = [
            {"kind": "begin"},
            {"kind": "untrained", "round": 0, "returns": [untrained] * 3},
        ]
        for k in range(1, 51):
            score = first + (last - first) * min(1.0, (k - 1) / 40)
            rows.append({"kind": "round", "round": k, "episodes": 3, "episode_return_mean": score})
            rows.append({"kind": "evaluation", "round": k, "return_mean": score})
        rows.append({"kind": "end", "round": 50})
        file.path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_target_is_at_least_half_of_the_way_by_hand(data: Path) -> None:
    write_pilots(data, untrained=10.0, first=20.0, last=410.0)
    assert spans(data, "evaluation") == {CART: Span((10.0,) * 5, 410.0)}
    assert spans(data, "training") == {CART: Span((20.0,) * 5, 410.0)}
    assert spans(data, "evaluation")[CART].least == 210.0
    assert why_not_skilled(TINY.model_copy(update={"targets": {CART: 210.0}}), data) == ""
    low = TINY.model_copy(update={"targets": {CART: 209.0}})
    assert " 210.0 " in why_not_skilled(low, data)
    (row,) = target_rows(low, data)
    assert (row["untrained"], row["reference"], row["skilled"]) == (10.0, 410.0, False)


def test_stored_pilots_say_what_they_said_where_they_ran(data: Path) -> None:
    """A stored run may be thinned; what the untrained policy scored in training is in its first round alone."""
    write_pilots(data, untrained=10.0, first=20.0, last=410.0)
    pilots = find_experiment("pilots")
    ran = {meter: spans(data, meter) for meter in ("evaluation", "training")}
    for cell in pilots.cells():
        if cell.environment == CART:
            file = run_file(pilots, data / "papers" / "pilots", cell)
            assert file.store()
            file.path.unlink()
    assert {meter: spans(data, meter) for meter in ("evaluation", "training")} == ran


def test_pilots_without_their_first_rounds_say_nothing_of_training(data: Path) -> None:
    write_pilots(data, untrained=10.0, first=20.0, last=410.0)
    for path in (data / "papers" / "pilots").rglob("*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [row for row in rows if row["kind"] != "round" or row["round"] % 10 == 0]
        path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    assert spans(data, "training") == {}
    assert CART in spans(data, "evaluation")
    asked = TINY.model_copy(update={"targets": {}, "training_targets": {CART: 300.0}})
    assert "papers run pilots` comes first" in why_not_skilled(asked, data)


@pytest.mark.parametrize("name", [name for name in experiment_names() if (RESULTS / f"{name}.json").exists()])
def test_what_a_report_says_of_its_targets_follows_from_stored_pilots(name: str, tmp_path: Path) -> None:
    reported = json.loads((RESULTS / f"{name}.json").read_text()).get("skill", [])
    computed = {
        (row["environment"], row["meter"]): row for row in target_rows(find_experiment(name), tmp_path)
    }
    for row in reported:
        if row["least"] is not None:
            assert row == computed[row["environment"], row["meter"]]
        else:
            assert computed[row["environment"], row["meter"]]["least"] is None


def test_no_target_is_within_reach_of_an_untrained_policy() -> None:
    """A lucky pilot seed above the target refuses it, however far away the reference is."""
    assert Span((10.0, 12.0), 100.0).allows(60.0)
    assert not Span((10.0, 61.0), 70.0).allows(60.0)
    # Where nothing is learned there is no target.
    assert not Span((-345.0, -340.0), -345.0).allows(-345.0)


def test_without_pilots_a_target_is_refused_and_says_what_comes_first(data: Path, settings: Any) -> None:
    settings.STARLING_DATA = data
    assert "papers run pilots` comes first" in why_not_skilled(TINY, data)
    assert why_not_skilled(find_experiment("nitro_endpoint"), data) == ""
    with pytest.raises(CommandError, match="comes first"):
        call_command("papers", "run", "nitro_rewards_fast")


def test_minionsrl_s_first_target_on_half_cheetah_was_the_untrained_policy(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = {"HalfCheetah-v5": Span((-344.8, -338.0, -351.0), 200.0)}
    monkeypatch.setattr(skill, "spans", lambda *_: measured)
    rows = target_rows(find_experiment("minionsrl_table2"), data)
    (found,) = [row for row in rows if row["environment"] == "HalfCheetah-v5"]
    assert found["skilled"] is False
