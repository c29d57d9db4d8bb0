"""`manage.py schedulers train|list|show|export|search`: on the command line, in the dashboard's own tables."""

from __future__ import annotations

import json
import threading
import uuid
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from webapp.accounts.models import Project, Role
from webapp.jobs.form.spec_documents import SpecError, set_value
from webapp.jobs.form.spec_problems import problems
from webapp.management.command import FAILED_EXIT, LineCommand, on_stop_signals
from webapp.schedulers import queries, search, services
from webapp.schedulers.models import TrainingState
from webapp.schedulers.persist import described, exported
from webapp.schedulers.request import TrainingRequest
from webapp.schedulers.text import gap, step_line, version_line
from webapp.schedulers.training_run import run_training


class Command(LineCommand):
    help = "Trains schedulers on the simulated cloud, lists and shows them, and writes them to files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        ways = parser.add_subparsers(dest="what", required=True)
        train = ways.add_parser("train", help="train one; --resume continues an interrupted training")
        search = ways.add_parser("search", help="try settings of the scheduler, and rank them")
        for command in (train, search):
            command.add_argument("workload", metavar="PRESET", nargs="?", default="cartpole")
            command.add_argument("--name", default="")
            command.add_argument(
                "--begin-with", default="", metavar="ID", help="fine-tune this one, such as sch_….1"
            )
            command.add_argument(
                "--set",
                action="append",
                default=[],
                metavar="PATH=VALUE",
                dest="changes",
                help="such as scheduling.episodes=5, rounds=20 or platform.profile=aci-paper; may be repeated",
            )
        train.add_argument("--resume", type=int, metavar="NUMBER", help="continue this training")
        search.add_argument(
            "--settings", type=int, default=10, help="how many, drawn by chance; 0 for all of them"
        )
        search.add_argument("--seed", type=int, default=0)
        search.add_argument(
            "--real", action="store_true", help="judge by real episodes too, not by rehearsals alone"
        )
        listed = ways.add_parser("list", help="the project's schedulers")
        show = ways.add_parser("show", help="the facts of one")
        export = ways.add_parser("export", help="one with its weights, as a JSON document")
        for command in (show, export):
            command.add_argument("id", help="such as sch_abcdefghij.2")
        export.add_argument("file", type=Path, nargs="?", help="left out: it is written to the output")
        for one in (train, search, listed, show, export):
            one.add_argument("--project", default="", metavar="SLUG", help="left out: the only one there is")
            one.add_argument("--json", action="store_true", dest="as_json", help="JSON, one object a line")

    def handle(self, *args: Any, what: str, **options: Any) -> None:
        self._as_json = options["as_json"]
        try:
            self._project = project_named(options["project"])
            getattr(self, f"_{what}")(options)
        except (NoProject, SpecError, services.TrainingRefused) as error:
            self.refuse(str(error))

    def _train(self, options: dict[str, Any]) -> None:
        if options["resume"] is not None:
            training = queries.trainings_of(self._project).filter(pk=options["resume"]).first()
            if training is None:
                self.refuse(f"There is no training {options['resume']} in {self._project.slug}.")
        else:
            request = read_request(self._project, options)
            owner = owner_of(self._project)
            training = services.request_training(
                project=self._project, user=owner, request=request, tell_worker=False
            )
        self._say({"kind": "training", "number": training.pk}, f"Training {training.pk} of {training.name}.")
        self._run(training)
        if training.state != TrainingState.DONE:
            self.refuse(
                f"{training.get_state_display()}: {training.reason or 'another process runs it.'}",
                FAILED_EXIT,
            )
        version = training.version
        self._say({"kind": "version", "id": version.key, **version.facts}, version_line(version))

    def _search(self, options: dict[str, Any]) -> None:
        if not options["real"]:
            options["changes"] = ["scheduling.episodes=0", *options["changes"]]
        request = read_request(self._project, options)
        name = options["name"] or f"search of {options['workload']}"
        chosen = search.draw(options["settings"], options["seed"]) if options["settings"] else search.grid()
        for training in search.trainings(self._project, owner_of(self._project), request, name, chosen):
            self._say({"kind": "training", "number": training.pk}, f"Training {training.pk}:")
            self._run(training)
            if training.state in (TrainingState.QUEUED, TrainingState.RUNNING):  # a stop was requested
                break
        for row in search.rows(self._project, name):
            score = "–" if row.score is None else f"{row.score:.3f}"
            words = ", ".join(f"{key} {value:g}" for key, value in row.setting.items())
            self._say(
                {"kind": "row", **asdict(row)}, f"{score:>8}  {words}  ({row.state}, {row.wall_s:.0f} s)"
            )

    def _list(self, options: dict[str, Any]) -> None:
        versions = list(queries.versions_of(self._project))
        for version in versions:
            self._say(described(version), version_line(version))
        if not versions and not self._as_json:
            self.stdout.write("No scheduler is trained yet: manage.py schedulers train cartpole")

    def _show(self, options: dict[str, Any]) -> None:
        version = self._version(options["id"])
        self._say(described(version), version_line(version))
        if not self._as_json:
            for line in gap(version.facts, version.training.parsed_spec):
                self.stdout.write(f"  {line.title:<20}{line.rehearsed:>12} rehearsed {line.real:>12} real")

    def _export(self, options: dict[str, Any]) -> None:
        text = json.dumps(exported(self._version(options["id"])), indent=None if self._as_json else 2)
        if options["file"] is None:
            self.stdout.write(text)
            return
        try:
            options["file"].write_text(text)
        except OSError as error:
            self.refuse(f"{options['file']} cannot be written: {error.strerror}.", FAILED_EXIT)

    def _version(self, key: str) -> Any:

        version = queries.version_in(self._project, key)
        if version is None:
            self.refuse(f"There is no scheduler {key} in {self._project.slug}; `schedulers list` names them.")
        return version

    def _run(self, training: Any) -> None:
        """Run the training in this process, with the worker's code. After Ctrl-C it can be continued later."""
        hand_over = threading.Event()
        on_stop_signals(hand_over.set)

        def on_step(step: Any) -> None:
            figures = {**asdict(step), "kind": "episode", "episode_kind": str(step.kind)}
            kept = {key: value for key, value in figures.items() if key not in ("state", "reports")}
            self._say(kept, step_line(step))

        run_training(training.pk, owner=uuid.uuid4().hex, hand_over=hand_over, on_step=on_step)
        training.refresh_from_db()

    def _say(self, figures: dict[str, Any], words: str) -> None:
        self.tell(json.dumps(figures, default=str) if self._as_json else words)


class NoProject(ValueError):
    """The project does not exist, or was not named although there are several."""


def project_named(slug: str) -> Project:
    """The project of that slug, or the only one without a slug. Raises NoProject."""
    projects = list(Project.objects.filter(slug=slug) if slug else Project.objects.all()[:2])
    if len(projects) == 1:
        return projects[0]
    if slug:
        raise NoProject(f"There is no project {slug!r}.")
    names = ", ".join(Project.objects.values_list("slug", flat=True)[:10])
    raise NoProject(
        f"Name one with --project: {names}."
        if projects
        else "There is no project yet: sign up in the dashboard first."
    )


def owner_of(project: Project) -> Any:
    """The user in whose name the command line acts."""
    return project.memberships.filter(role=Role.OWNER).order_by("pk").select_related("user")[0].user


def read_request(project: Project, options: dict[str, Any]) -> TrainingRequest:
    """Defaults, then what follows from the scheduler to begin with, then --set. SpecError says what is wrong."""
    start = TrainingRequest.model_validate({"workload": options["workload"]})
    version = queries.version_in(project, options["begin_with"])
    if version is not None:
        start = services.continue_with(start, version)
    document = start.model_dump(mode="json")
    document["workload"] = options["workload"]
    document["name"] = options["name"] or options["workload"]
    document["begin_with"] = options["begin_with"]
    for change in options["changes"]:
        set_value(document, change, TrainingRequest)
    try:
        return TrainingRequest.model_validate(document)
    except ValidationError as error:
        raise SpecError(problems(error, TrainingRequest)) from None
