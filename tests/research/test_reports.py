"""Reports fit the pages that show them, and every figure of the papers has its experiment or its reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from research import calculation
from research.experiment import experiment_names, find_experiment
from research.pricing_targets import place_of
from research.reports.earlier import add_earlier
from research.reports.preregistration import declaration, numbers_hash, priced_with
from research.reports.report import write_report
from research.runs.archive import cells_in
from research.runs.run_file import RESULTS
from webapp.comparing.papers import figures
from webapp.comparing.papers.figures import FIGURES, find_result
from webapp.comparing.papers.pages import page_of

# Every figure with something to repeat; the others draw architectures.
REQUESTED = {
    *(f"minionsrl-{one}" for one in ("1b", "2", "4", "5", "6", "7", "8", "9", "table-2")),
    *(f"nitro-{one}" for one in (2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, "16ab", "16c", 17, 18, 19, 20)),
    *(f"siren-{one}" for one in ("toy-example", "simulation", "training-of-the-agent")),
    *(f"siren-{one}" for one in ("time-against-cost", "testbed-against-servers")),
    *(f"stellaris-{one}" for one in ("rewards", "costs", "feature-table", "ablation", "hpc-cluster")),
}


def test_every_figure_that_was_requested_is_there_and_leads_somewhere() -> None:
    known = {*experiment_names(), *calculation.names()}
    assert {one.key for one in FIGURES} == REQUESTED
    for one in FIGURES:
        assert set(one.repeated_by) <= known
        assert one.repeated_by or one.elsewhere or "Not repeated" in one.remark, one.key
    claimed = {
        key
        for name in experiment_names()
        for claim in find_experiment(name).claims
        for key in getattr(claim, "repeats", ())
    }
    assert claimed <= REQUESTED


def test_a_report_tells_all_that_its_page_needs(tmp_path: Path) -> None:
    """Without a single run: the declaration, what is left, and each claim in parts."""
    experiment = find_experiment("nitro_large")
    results = write_report("nitro_large", experiment, tmp_path / "runs", tmp_path, draws=0)
    assert (results["runs_complete"], results["runs"]) == (0, 10)
    assert results["processor_s_left"] == 9000
    assert set(results["priced_with"]["profiles"]) == {"lambda", "one-machine"}
    page = page_of("nitro_large", json.loads((tmp_path / "nitro_large.json").read_text()))
    assert [one.theirs for one in page["open"]] == ["fixed at 96", "fixed at 96"]


def test_prices_are_named_by_their_numbers_alone() -> None:
    profile = place_of("functions_paper").profile
    other_words = profile.model_copy(update={"words": "Said in another sentence."})
    ratio = profile.core_ratio.model_copy(update={"high": profile.core_ratio.high + 1.0})
    other_numbers = profile.model_copy(update={"core_ratio": ratio})
    assert numbers_hash(profile) == numbers_hash(other_words) != numbers_hash(other_numbers)


@pytest.mark.parametrize(
    "names",
    [("branching", "nitro_large"), pytest.param(experiment_names(), id="all", marks=pytest.mark.slow)],
)
def test_collecting_leaves_alone_what_has_not_changed(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[str]
) -> None:
    settings.STARLING_DATA = tmp_path / "data"
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    reported: list[str] = []
    from webapp.management.commands import papers as command

    monkeypatch.setattr(command, "experiment_names", lambda: names)
    for name in names:
        experiment = find_experiment(name)
        folder = settings.STARLING_DATA / "papers" / name
        done = sum(command.run_file(experiment, folder, cell).complete for cell in experiment.cells())
        stored = {"title": name, "runs_complete": done + (name == "branching")}
        (tmp_path / f"{name}.json").write_text(json.dumps(stored))
    monkeypatch.setattr(command.Command, "_report", lambda self, name, *_args, **_more: reported.append(name))
    call_command("papers", "collect")
    assert reported == ["branching"]


def test_runs_are_stored_in_one_archive_an_experiment() -> None:
    assert not list(RESULTS.glob("*/*.runs")), "`manage.py papers collect` joins them"


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.runs")), ids=lambda path: path.stem)
def test_stored_runs_are_whole_and_declared(path: Path) -> None:
    """Each run is of an arm that has its home there, also where only another experiment has it run."""
    declared = {
        cell
        for name in experiment_names()
        for experiment in (find_experiment(name),)
        for cell in experiment.cells()
        for arm in (experiment.arm(cell.arm),)
        if (arm.home or name) == path.stem
    }
    stored = cells_in(path)
    assert stored
    assert set(stored) <= declared


def test_an_earlier_verdict_stands_beside_the_new_one_whatever_the_best_of_several_was() -> None:
    stored = json.loads((RESULTS / "earlier" / "verdicts.json").read_text())
    for name, claims in stored.items():
        found = [{"asked": one["asked"], "verdict": "open", "reason": "", "figures": {}} for one in claims]
        best = [one for one in found if "the best of" in one["asked"].get("theirs", "")]
        for one in best:
            one["asked"] = {**one["asked"], "theirs": "fixed at 999, the best of 3 on other seeds"}
        plain = {"verdict": "open", "reason": "", "claim": "PPO reaches 700."}
        add_earlier(name, [*found, plain])
        assert [one["figures"]["earlier"]["verdict"] for one in found] == [one["verdict"] for one in claims]
        assert "figures" not in plain


@pytest.mark.parametrize("name", [one for one in experiment_names() if figures.find_result(one)])
def test_a_stored_result_says_what_its_experiment_says_today(name: str) -> None:
    """Its question, what it can claim, what it is beside, and each setting that is not the paper's."""
    stored = figures.find_result(name)
    assert stored is not None
    now = json.loads(json.dumps(declaration(find_experiment(name))))
    other = [part for part, value in now.items() if stored.get(part) != value]
    assert not other, f"{', '.join(other)} of {name}: run `manage.py papers report {name}`"


@pytest.mark.parametrize(
    "name", [one for one in experiment_names() if (figures.find_result(one) or {}).get("priced_with")]
)
def test_a_stored_result_was_priced_with_the_numbers_of_today(name: str) -> None:
    stored = figures.find_result(name)
    assert stored is not None
    assert stored["priced_with"] == priced_with(find_experiment(name)), (
        f"run `manage.py papers report {name}`"
    )


@pytest.mark.parametrize("name", experiment_names())
def test_one_environment_alone_is_not_decided_by_a_p_value_that_is_large_among_all(name: str) -> None:
    results = find_result(name)
    for one in results["verdicts"] if results else ():
        for row in one.get("figures", {}).get("by_environment", ()):
            if row["word"] in ("holds", "does not hold") and not one["asked"].get("alike"):
                assert row["p_holm"] is None or row["p_holm"] <= 0.05, (one["claim"], row["environment"])
