"""Turns arguments of the command line into the request of a training."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from webapp.accounts.models import Project, Role
from webapp.jobs.form.spec_documents import SpecError, set_value
from webapp.jobs.form.spec_problems import problems
from webapp.schedulers import queries, services
from webapp.schedulers.request import TrainingRequest


class NoProject(ValueError):
    """The project does not exist, or was not named although there are several."""


def project_named(slug: str) -> Project:
    """The project of that slug, or the only one without a slug. Raises NoProject."""
    found = list(Project.objects.filter(slug=slug) if slug else Project.objects.all()[:2])
    if len(found) == 1:
        return found[0]
    if slug:
        raise NoProject(f"There is no project {slug!r}.")
    names = ", ".join(Project.objects.values_list("slug", flat=True)[:10])
    raise NoProject(
        f"Name one with --project: {names}."
        if found
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
