"""`manage.py papers list | run NAME | keep NAME | report NAME | collect`: experiments, declared as data, run and
judged.
"""

import json
import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from research.calculation import find, write
from research.calculation import names as calculations
from research.experiment import Experiment, UnknownExperiment, experiment_names, find_experiment
from research.reports.report import write_report
from research.runs.archive import join_archives
from research.runs.run_file import RunLocked, papers_folder, run_file
from research.runs.runner import LOCKED_EXIT, ExperimentRunner, RunChoice
from research.runs.seed_run import RunFailed, SeedRun
from research.skill import why_not_skilled
from webapp.comparing.papers.figures import RESULTS, find_result
from webapp.management.command import WRONG_INPUT_EXIT, LineCommand, on_stop_signals

_NOT_EVIDENCE = "quick: not evidence"
_NICENESS = 10


class Command(LineCommand):
    help = "Runs experiments (research/experiments) and writes what came out to research/results."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "action",
            choices=("list", "run", "report", "keep", "collect", "seed"),
            help="keep: put complete runs into research/results; collect: keep and report whatever has changed, of all"
            " experiments; seed: one run, in this process",
        )
        add("name", nargs="?", metavar="NAME", help="an experiment; `list` names them")
        add("--quick", action="store_true", help="one environment, 2 seeds, 6 rounds: not evidence")
        add("--jobs", type=int, default=2, metavar="N", help="runs at a time (2)")
        add("--arms", nargs="+", metavar="ARM")
        add("--environments", nargs="+", metavar="ENVIRONMENT")
        add("--seeds", nargs="+", type=int, metavar="SEED")
        add(
            "--draws",
            type=int,
            default=200,
            metavar="N",
            help="draws of the clouds' numbers in a report (200)",
        )
        add("--json", action="store_true", dest="as_json", help="one JSON line for each thing that happens")

    def handle(self, *, action: str, name: str | None, **options: Any) -> None:
        if action == "list":
            self._list(as_json=options["as_json"])
            return
        if action != "seed" and not options["quick"]:
            join_archives(RESULTS)
        if action == "collect":
            self._collect(draws=options["draws"])
            return
        if name in calculations():
            if action == "run" and not options["quick"] and (prepare := find(name).prepare) is not None:
                _lower_priority()
                prepare()
            self._calculate(name, quick=options["quick"], as_json=options["as_json"])
            return
        try:
            if name is None:
                raise ValueError(
                    f"`papers {action}` needs the name of an experiment: {', '.join(experiment_names())}."
                )
            experiment = find_experiment(name)
            choice = RunChoice(
                options["arms"], options["environments"], options["seeds"], quick=options["quick"]
            )
            cells = choice.cells(experiment)
            if options["jobs"] < 1:
                raise ValueError("--jobs must be 1 or more.")
        except (UnknownExperiment, ValueError) as error:
            raise CommandError(str(error), returncode=WRONG_INPUT_EXIT) from None
        folder = papers_folder(settings.STARLING_DATA, name, quick=choice.quick)
        if action == "keep":
            kept = sum(run_file(experiment, folder, cell).store() for cell in cells)
            self.stdout.write(f"{kept} complete runs kept.")
        elif action == "seed":
            self._seed(experiment, cells, folder, quick=choice.quick)
        elif action == "run":
            if not choice.quick and (why := why_not_skilled(experiment, settings.STARLING_DATA)):
                raise CommandError(why, returncode=WRONG_INPUT_EXIT)
            self._run(
                ExperimentRunner(
                    name, experiment, choice, folder=folder, root=settings.BASE_DIR, jobs=options["jobs"]
                ),
                as_json=options["as_json"],
                quick=choice.quick,
            )
        else:
            self._report(
                name,
                experiment,
                folder,
                quick=choice.quick,
                draws=options["draws"],
                as_json=options["as_json"],
            )

    def _list(self, *, as_json: bool) -> None:
        rows = []
        for name in experiment_names():
            experiment = find_experiment(name)
            folder = papers_folder(settings.STARLING_DATA, name, quick=False)
            cells = list(experiment.cells())
            done = sum(run_file(experiment, folder, cell).complete for cell in cells)
            rows.append({"name": name, "title": experiment.title, "runs": len(cells), "complete": done})
        rows += [
            {"name": name, "title": find(name).title, "runs": 0, "complete": 0} for name in calculations()
        ]
        if as_json:
            self.stdout.write(json.dumps(rows))
            return
        for row in rows:
            self.stdout.write(
                f"{row['name']:<22} {row['complete']:>3} of {row['runs']:<3} runs  {row['title']}"
            )

    def _collect(self, *, draws: int) -> None:
        """Every experiment with more complete runs than its stored result knows of, or without a result."""
        for name in experiment_names():
            experiment = find_experiment(name)
            folder = papers_folder(settings.STARLING_DATA, name, quick=False)
            files = [run_file(experiment, folder, cell) for cell in experiment.cells()]
            done = sum(file.complete for file in files)
            before = find_result(name)
            if before is not None and before["runs_complete"] == done:
                continue
            kept = sum(file.store() for file in files)
            self.tell(f"{name}: {done} complete runs, {kept} kept from here")
            self._report(name, experiment, folder, quick=False, draws=draws, as_json=False)

    def _calculate(self, name: str, *, quick: bool, as_json: bool) -> None:
        """Every action computes a calculation and writes its report."""
        target = papers_folder(settings.STARLING_DATA, name, quick=True) if quick else RESULTS
        results = write(name, target, settings.BASE_DIR, quick=quick)
        if as_json:
            self.tell(json.dumps(results))
            return
        self.tell(f"{target / name}.md")
        for verdict in results["verdicts"]:
            self.tell(f"{verdict['verdict']}: {verdict['claim']} {verdict['reason']}")

    def _run(self, runner: ExperimentRunner, *, as_json: bool, quick: bool) -> None:
        on_stop_signals(runner.stop)
        states: dict[str, int] = {}
        over = 0
        for progress in runner.run():
            cell = progress.cell
            states[progress.state] = states.get(progress.state, 0) + 1
            over += progress.state != "started"
            if as_json:
                line = json.dumps({"kind": progress.state, **cell._asdict(), "reason": progress.reason})
            else:
                reason = f": {progress.reason}" if progress.reason else ""
                count = f"{over} of {runner.run_count}"
                line = f"{count}: {cell.arm} · {cell.environment} · seed {cell.seed} {progress.state}{reason}"
            self.tell(line)
        summary = {"kind": "summary", "evidence": not quick, **states}
        note = f" ({_NOT_EVIDENCE})" if quick else ""
        counted = ", ".join(f"{count} {state}" for state, count in states.items() if state != "started")
        self.tell(json.dumps(summary) if as_json else f"{counted or 'nothing to do'}{note}")
        if states.get("failed"):
            sys.exit(1)

    def _seed(self, experiment: Experiment, cells: list[Any], folder: Path, *, quick: bool) -> None:
        if len(cells) != 1:
            raise CommandError(
                f"`papers seed` does one run; this chooses {len(cells)}.", returncode=WRONG_INPUT_EXIT
            )
        file = run_file(experiment, folder, cells[0])
        run = SeedRun(experiment, cells[0], file, root=settings.BASE_DIR, folder=folder, quick=quick)
        on_stop_signals(run.stop)
        _lower_priority()
        try:
            run.run()
        except RunLocked:
            sys.exit(LOCKED_EXIT)
        except RunFailed as error:
            raise CommandError(str(error), returncode=1) from None

    def _report(
        self, name: str, experiment: Experiment, folder: Path, *, quick: bool, draws: int, as_json: bool
    ) -> None:
        target = folder if quick else RESULTS
        results = write_report(name, experiment, folder, target, quick=quick, draws=draws)
        if as_json:
            self.tell(json.dumps(results))
            return
        self.tell(f"{target / name}.md")
        for verdict in results["verdicts"]:
            self.tell(f"{verdict['verdict']}: {verdict['claim']} {verdict['reason']}")


def _lower_priority() -> None:
    """Give way to whatever else this machine does; children inherit it."""
    os.setpriority(os.PRIO_PROCESS, 0, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
