"""`manage.py train PRESET|FILE`: the engine without the dashboard. Uses no database, broker or server."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from training.engine.checkpoints import CheckpointError
from training.engine.messages import FAILED_ENDS
from webapp.jobs.form.spec_documents import SpecError, add_spec_arguments, read_spec
from webapp.jobs.running.checkpoint_files import CheckpointNotWritten
from webapp.jobs.running.headless import Headless
from webapp.jobs.services import limits
from webapp.jobs.spec import JobSpec
from webapp.management.command import FAILED_EXIT, LineCommand, on_stop_signals
from webapp.management.training_progress import ProgressLine


class Command(LineCommand):
    help = (
        "Trains as a preset or a spec file says, and tells what happens: on a terminal in one line that is replaced,"
        " elsewhere in a line an event, with --json one JSON line an event."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_spec_arguments(parser)
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="one JSON line an event, then a summary"
        )
        parser.add_argument("--checkpoints", type=Path, metavar="FOLDER", help="keep checkpoints there")
        parser.add_argument("--resume", type=Path, metavar="FILE", help="go on from this checkpoint")
        parser.add_argument(
            "--work",
            type=Path,
            metavar="FILE",
            help="write down each call's work and bill, to time and price the run again with `retime`",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            spec = read_spec(options["spec"], options["changes"], limits())
            run = Headless(
                spec,
                checkpoints=options["checkpoints"],
                resume=options["resume"],
                work=options["work"],
            )
        except (SpecError, CheckpointError) as error:
            self.refuse(str(error))
        on_stop_signals(run.stop)
        try:
            if self.has_terminal and not options["as_json"]:
                self._draw(run, spec)
            else:
                self._tell(run.events(), as_json=options["as_json"])
        except CheckpointNotWritten as error:
            self.refuse(str(error), FAILED_EXIT)
        summary = run.summary()
        self.tell(json.dumps(summary) if options["as_json"] else _summary_line(summary))
        if summary["reason_code"] in FAILED_ENDS:
            sys.exit(FAILED_EXIT)

    def _draw(self, run: Headless, spec: JobSpec) -> None:
        """Rounds replace one line; other events stay above it."""
        progress = ProgressLine(spec)
        for event in run.events():
            if event.kind == "round":
                self.show_progress(progress.line(event.report))
                continue
            if event.kind == "started" and event.resumed_from_round is None:
                progress.begin()
            if line := _line(event):
                self.tell(line)

    def _tell(self, events: Iterator[Any], *, as_json: bool) -> None:
        for event in events:
            line = event.model_dump_json() if as_json else _line(event)
            if line:
                self.tell(line)


def _line(event: Any) -> str:
    """Return an event as a line of text; None for events without news."""
    match event.kind:
        case "started":
            resumed = event.resumed_from_round
            first = "Training begins." if resumed is None else f"Training goes on from round {resumed:,}."
            return "\n".join([first, event.stepping, *event.notes])
        case "round":
            report = event.report
            seen = report.score
            reward = "" if seen is None else f", return {seen:.1f}"
            return (
                f"round {report.round_no:,}: {report.total_progress:,} steps, {report.actors} actors"
                f"{reward}, {report.total_s:.2f} s"
            )
        case "evaluation":
            return f"evaluation after round {event.round_no:,}: {event.figures.text}"
        case "checkpoint":
            without = (
                f" without {event.left_out:,} trajectories, which are sampled again" if event.left_out else ""
            )
            return f"checkpoint {event.name}{without}"
        case "call_failed":
            return (
                f"call {event.call_id} failed: {event.reason}{' (tried again)' if event.will_retry else ''}"
            )
    return ""


def _summary_line(summary: dict[str, Any]) -> str:
    mean = summary["evaluation_return_mean"]
    judged = "not evaluated" if mean is None else f"evaluated return {mean:.1f}"
    simulated = ", simulated" if summary["simulated"] else ""
    return (
        f"Over: {summary['reason']}. {summary['env_steps']:,} steps in {summary['rounds']:,} rounds, {judged},"
        f" cost ${summary['cost_usd']:.6f}{simulated}."
    )
