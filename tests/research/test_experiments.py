"""Experiments end to end: runs in processes of their own, deaths in mid-run, and what is said of the outcome."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pydantic import ValidationError

from cloud.workers.processes import bound_to_this_process
from research.claims import NotWorse, Reaches
from research.experiment import (
    Arm,
    Cell,
    Experiment,
    ExperimentSetting,
    experiment_names,
    find_experiment,
    merged,
    recipe_hash,
)
from research.reports.cost_report import cost_verdicts
from research.reports.judging import undecided
from research.reports.outcomes import read_summaries
from research.reports.report import write_report
from research.reports.verdicts import verdicts
from research.runs.run_file import RESULTS, RunFile, papers_folder
from research.runs.runner import RunChoice
from rig.servers import ROOT, wait_until


def _papers(data: Path, *words: str) -> list[str]:
    return [sys.executable, str(ROOT / "manage.py"), "papers", *words]


def _environment(data: Path) -> dict[str, str]:
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "webapp.settings", "STARLING_DATA": str(data)}


def _call(data: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    answer = subprocess.run(
        _papers(data, *words), cwd=ROOT, env=_environment(data), capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == code, answer.stderr
    return answer


def _rounds(rows: list[dict[str, Any]]) -> list[int]:
    return [row["round"] for row in rows if row["kind"] == "round"]


@pytest.mark.slow
def test_a_quick_run_end_to_end(tmp_path: Path) -> None:
    output = _call(tmp_path, "run", "same_twice", "--quick", "--arms", "once", "--json").stdout
    *_, summary = (json.loads(line) for line in output.splitlines())
    assert summary == {"kind": "summary", "evidence": False, "started": 2, "complete": 2}
    folder = papers_folder(tmp_path, "same_twice", quick=True)
    for seed in (0, 1):
        rows = RunFile(folder, Cell("once", "CartPole-v1", seed)).rows()
        assert {(row["arm"], row["environment"], row["seed"]) for row in rows} == {
            ("once", "CartPole-v1", seed)
        }
        assert rows[0]["kind"] == "begin"
        assert rows[0]["evidence"] is False
        assert {"cpu", "python", "numpy", "torch", "mujoco", "gymnasium", "ale-py", "commit"} <= set(
            rows[0]["made_with"]
        )
        assert _rounds(rows) == [1, 2, 3, 4, 5, 6]
        assert [row["round"] for row in rows if row["kind"] == "evaluation"] == [3, 6]
        assert [row["kind"] for row in rows[-2:]] == ["final", "end"]
        assert len(rows[-2]["returns"]) == 3
    # What is complete is not run again, and the report says what this is not.
    again = _call(tmp_path, "run", "same_twice", "--quick", "--arms", "once", "--json").stdout
    assert json.loads(again.splitlines()[-1])["skipped"] == 2
    report = json.loads(_call(tmp_path, "report", "same_twice", "--quick", "--json").stdout)
    assert report["evidence"] is False
    assert report["verdicts"] == []
    assert "Not evidence" in (folder / "same_twice.md").read_text()
    assert (folder / "same_twice.svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_a_killed_run_goes_on_and_gives_what_an_unbroken_one_gives(tmp_path: Path) -> None:
    one = ("seed", "same_twice", "--arms", "once", "--environments", "CartPole-v1", "--seeds", "0")
    broken, unbroken = tmp_path / "broken", tmp_path / "unbroken"
    cell = Cell("once", "CartPole-v1", 0)
    file = RunFile(papers_folder(broken, "same_twice", quick=False), cell)
    assert not (RESULTS / "same_twice.runs").exists(), (
        "a run that is stored with the project is not made again"
    )
    process = subprocess.Popen(
        bound_to_this_process(_papers(broken, *one)),
        cwd=ROOT,
        env=_environment(broken),
        start_new_session=True,
    )
    wait_until(lambda: len(_rounds(file.rows())) >= 14, within_s=240, what="14 rounds are done")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = file.rows()
    assert not file.complete
    # A dying process may leave half a line.
    with file.path.open("a") as half:
        half.write('{"kind": "rou')
    _call(broken, *one)
    _call(unbroken, *one)
    rows = file.rows()
    assert file.complete
    assert [row["round"] for row in rows if row["kind"] == "resumed"] == [len(_rounds(before)) // 10 * 10]
    assert _rounds(rows) == list(range(1, 61))
    whole = RunFile(papers_folder(unbroken, "same_twice", quick=False), cell).rows()

    def learned(found: list[dict[str, Any]]) -> list[Any]:
        return [
            (row["kind"], row["round"], row.get("update"), row.get("returns"), row.get("episode_return_mean"))
            for row in found
            if row["kind"] in ("round", "evaluation", "final")
        ]

    assert learned(rows) == learned(whole)
    walls = [row["wall_s"] for row in rows if row["kind"] == "round"]
    assert walls == sorted(walls)


def test_two_runners_do_not_touch_the_same_run(tmp_path: Path) -> None:
    folder = papers_folder(tmp_path, "same_twice", quick=True)
    with RunFile(folder, Cell("once", "CartPole-v1", 0)).locked():
        output = _call(
            tmp_path, "run", "same_twice", "--quick", "--arms", "once", "--seeds", "0", "--json"
        ).stdout
    assert [json.loads(line)["kind"] for line in output.splitlines()] == ["started", "held", "summary"]


def test_a_run_is_not_continued_with_another_recipe(tmp_path: Path) -> None:
    file = RunFile(papers_folder(tmp_path, "same_twice", quick=True), Cell("once", "CartPole-v1", 0))
    file.path.parent.mkdir(parents=True)
    file.append({"kind": "begin", "recipe": "another"})
    output = _call(tmp_path, "run", "same_twice", "--quick", "--arms", "once", "--seeds", "0", code=1).stdout
    assert f"{file.path} was begun" in output


@pytest.mark.parametrize("name", experiment_names())
def test_every_experiment_is_whole(name: str) -> None:
    """Each run is a valid spec of its own, arms of a seed are judged on the same episodes, and bars are declared."""
    experiment = find_experiment(name)
    cells = list(experiment.cells())
    assert len(set(cells)) == len(cells)
    assert len({recipe_hash(experiment.spec(cell)) for cell in cells}) == len(cells)
    assert experiment.claims
    for cell in experiment.cells(quick=True):
        assert experiment.spec(cell, quick=True).training.stop.rounds == 6
    by_seed: dict[int, set[tuple[int, ...]]] = {}
    for cell in cells:
        by_seed.setdefault(cell.seed, set()).add(tuple(experiment.evaluation_seeds(cell)))
    assert all(len(seeds) == 1 for seeds in by_seed.values())
    assert len(set.union(*by_seed.values())) == len(by_seed)


def test_a_table_of_another_kind_replaces_the_old_one() -> None:
    base = {"algorithm": {"kind": "ppo", "clip": 0.1}, "stop": {"rounds": 1}}
    assert merged(base, {"algorithm": {"clip": 0.2}})["algorithm"] == {"kind": "ppo", "clip": 0.2}
    assert merged(base, {"algorithm": {"kind": "impact"}})["algorithm"] == {"kind": "impact"}
    assert base["algorithm"] == {"kind": "ppo", "clip": 0.1}


def _experiment(**changes: Any) -> Experiment:
    return Experiment(
        title="T",
        question="Q?",
        oracle="O",
        can_claim="C",
        base={},
        **{
            "arms": (Arm(name="ours", title="Ours"), Arm(name="theirs", title="Theirs")),
            "settings": (ExperimentSetting(environment="Hopper-v5", seeds=(0, 1, 2, 3, 4)),),
            "claims": (
                Reaches(arm="ours", environment="Hopper-v5", value=2300, source="a goal"),
                NotWorse(arm="ours", against="theirs", environment="Hopper-v5", margin=0.8),
            ),
            **changes,
        },
    )


def test_an_experiment_that_names_what_is_not_there_is_refused() -> None:
    with pytest.raises(ValidationError, match="not there"):
        _experiment(arms=(Arm(name="ours", title="Ours"),))
    with pytest.raises(ValidationError, match="not there"):
        _experiment(settings=(ExperimentSetting(environment="Hopper-v5", seeds=(0,), arms=("nobody",)),))


def _write_runs(experiment: Experiment, folder: Path, returns: dict[str, list[float]]) -> None:
    """Complete runs with these endpoints, one a seed."""
    for arm, endpoints in returns.items():
        for seed, endpoint in enumerate(endpoints):
            cell = Cell(arm, "Hopper-v5", seed)
            file = RunFile(folder, cell)
            file.path.parent.mkdir(parents=True, exist_ok=True)
            recipe = recipe_hash(experiment.spec(cell))
            file.append({"kind": "begin", "made_with": {"cpu": "one"}, "recipe": recipe, "evidence": True})
            for place in (1, 2, 3, 4):
                shared = {"round": place, "env_steps": place * 250_000, "wall_s": 60.0 * place}
                file.append(
                    {
                        "kind": "round",
                        "episodes": 60,
                        "episode_return_mean": endpoint,
                        "cost_usd": place,
                        **shared,
                    }
                )
                file.append({"kind": "evaluation", "return_mean": endpoint * place / 4, **shared})
            file.append(
                {"kind": "final", "round": 4, "returns": [endpoint - 1, endpoint + 1], "lengths": [1, 1]}
            )
            file.append({"kind": "end", "round": 4, "env_steps": 1_000_000, "wall_s": 240.0, "cost_usd": 4})


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ([2500, 2450, 2550, 2480, 2520], [2400, 2500, 2450, 2550, 2480], ["holds", "holds"]),
        ([1500, 1450, 1550, 1480, 1520], [2400, 2500, 2450, 2550, 2480], ["does not hold", "does not hold"]),
        (
            [1500, 3500, 1000, 4000, 2000],
            [2400, 2500, 2450, 2550, 2480],
            ["holds", undecided(5)],
        ),
        ([2500, 2450, 2550, 2480], [2400, 2500, 2450, 2550, 2480], ["open", "open"]),
        ([2500, 2450, 2550, 2480, 2520], [], ["holds", "open"]),
        (
            [2500, 2450, 2550, 2480, 2520],
            [-5, 2500, 2450, 2550, 2480],
            ["holds", undecided(5)],
        ),
    ],
)
def test_a_verdict_waits_for_all_its_seeds(
    tmp_path: Path, ours: list[float], theirs: list[float], words: list[str]
) -> None:
    experiment = _experiment()
    _write_runs(experiment, tmp_path, {"ours": ours, "theirs": theirs})
    summaries = read_summaries(experiment, tmp_path, quick=False)
    found = [*verdicts(experiment, summaries), *cost_verdicts(experiment, summaries, {}, draws=0)]
    assert [one.verdict for one in found] == words
    assert all(one.reason for one in found)


def test_a_report_tells_table_verdicts_speed_and_figure(tmp_path: Path) -> None:
    experiment = _experiment()
    _write_runs(experiment, tmp_path, {"ours": [2500.0] * 5, "theirs": [2400.0] * 5})
    results = write_report("tiny", experiment, tmp_path, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "tiny.json").read_text()) == results
    assert results["complete"]
    ours = results["arms"][0]
    assert ours["iqm"] == {"value": 2500.0, "low": 2500.0, "high": 2500.0}
    assert ours["training_return_by_seed"]["0"] == 2500.0
    assert ours["area_under_dollars"] == ours["area_under_steps"] == [1328.125] * 5
    assert ours["to_threshold"]["reached"] == 0
    assert ours["to_threshold"]["par2_steps"] == 2_000_000
    text = (tmp_path / "out" / "tiny.md").read_text()
    assert "| Hopper-v5 | Ours | 5 of 5 | **2,500** [2,500, 2,500]" in text
    assert "**Holds**: Ours reaches 2,300 on Hopper-v5 (a goal)." in text
    assert "0 of 5 reached 2,300; no median: too few got there" in text
    figure = (tmp_path / "out" / "tiny.svg").read_text()
    assert figure.count("#0072B2") > 5
    assert "Theirs" in figure


def test_a_choice_keeps_the_declared_order() -> None:
    experiment = find_experiment("learning_mujoco")
    cells = RunChoice(["sb3"], None, [1, 0]).cells(experiment)
    assert cells == [Cell("sb3", "Hopper-v5", 0), Cell("sb3", "Hopper-v5", 1)]


def test_the_peers_program_imports_nothing_of_ours() -> None:
    text = (ROOT / "research" / "peers" / "sb3.py").read_text()
    imported = [
        line.split()[1].partition(".")[0]
        for line in text.splitlines()
        if line.strip().startswith(("import ", "from "))
    ]
    assert not {"training", "cloud", "webapp", "django"} & set(imported)


def test_without_the_peers_environment_a_sentence_says_what_to_do(tmp_path: Path) -> None:
    from research.runs.seed_run import RunFailed, SeedRun

    cell = Cell("sb3", "Hopper-v5", 0)
    run = SeedRun(
        find_experiment("learning_mujoco"), cell, RunFile(tmp_path, cell), root=tmp_path, quick=True
    )
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    with pytest.raises(RunFailed, match=r"needs \.venv-bench: run `make bench-setup` first"):
        run.run()
    assert os.getpriority(os.PRIO_PROCESS, 0) == niceness


@pytest.mark.parametrize(("rounds", "stored"), [(30, range(1, 31)), (120, range(10, 121, 10))])
def test_a_stored_run_is_done_on_any_machine(
    rounds: int, stored: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long one thinned, whole at both ends, and only once it is complete."""
    from research.runs import run_file

    monkeypatch.setattr(run_file, "RESULTS", tmp_path / "results")
    cell = Cell("arm", "ALE/Qbert-v5", 3)
    here = RunFile(papers_folder(tmp_path / "one", "some", quick=False), cell)
    here.path.parent.mkdir(parents=True)
    for row in [{"kind": "begin"}, *({"kind": "round", "round": no} for no in range(1, rounds + 1))]:
        here.append(row)
    here.append({"kind": "final", "round": rounds, "return_mean": 1.5})
    assert not here.store()
    here.append({"kind": "end", "round": rounds})
    assert here.store()
    there = RunFile(papers_folder(tmp_path / "another", "some", quick=False), cell)
    assert there.complete
    assert _rounds(there.rows()) == list(stored)
    assert [row["kind"] for row in there.rows()][-2:] == ["final", "end"]
    assert not RunFile(papers_folder(tmp_path / "another", "some", quick=True), cell).complete


def test_each_run_is_counted_of_all_that_were_chosen(tmp_path: Path, settings: Any, capsys: Any) -> None:
    settings.STARLING_DATA = tmp_path
    call_command("papers", "run", "asynchronous_return")
    *lines, summary = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"{number} of 10" for number in range(1, 11)]
    assert summary == "10 skipped"
