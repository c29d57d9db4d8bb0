"""Trained schedulers in jobs: the choices of forms, the problems of a choice, and the spec with its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from training.scaling.learned import Learned
from training.scaling.siren import Siren
from webapp.formatting import display_usd, plural
from webapp.jobs.form.spec_fields import Named
from webapp.jobs.form.spec_problems import Problem
from webapp.jobs.spec import JobSpec
from webapp.schedulers import queries
from webapp.schedulers.models import Version

FIELD = "training.scaling.scheduler"
_OFFERED = 50


def list_options(project: Any) -> list[Named]:
    """The project's schedulers, newest first."""
    return [Named(one.key, str(one), _words(one)) for one in queries.versions_of(project)[:_OFFERED]]


def _words(version: Version) -> str:
    spec, facts = version.training.spec, version.facts
    environment = spec["workload"]["environment"]["id"]
    count = facts["episodes"]
    after = plural(count, "real episode") if count else "rehearsals only, so nothing real has confirmed it"
    return (
        f"Chooses from 1 to {spec['actors_max']:,} actors. Trained for {environment} up to a return of"
        f" {spec['target_return']:g}, by {after}; that took {display_usd(facts['cost_picodollars'])} of simulated"
        " money."
    )


def empty_text(project: Any) -> SafeString:
    """The hint below the select of a project without schedulers."""
    address = reverse("schedulers:list", args=[project.slug])
    return format_html('No scheduler is trained yet. <a href="{}">Train one under Schedulers.</a>', address)


def fill_in_weights(project: Any, spec: JobSpec) -> JobSpec:
    """The spec with its scheduler's weights and settings; unchanged if it names no scheduler."""
    scaling = spec.training.scaling
    version = _chosen(project, scaling)
    if version is None:
        return spec
    trained = version.training.parsed_spec
    policy = trained.policy(version.weights, explore=False)
    follows = {"scheduler": version.key, "explore": scaling.explore} if isinstance(scaling, Learned) else {}
    training = spec.training.model_copy(update={"scaling": policy.model_copy(update=follows)})
    return spec.model_copy(update={"training": training})


def obstacles(project: Any, spec: JobSpec) -> Sequence[Problem]:
    """Problems of the job's choice of a scheduler; empty if there are none."""
    scaling = spec.training.scaling
    if isinstance(scaling, Siren) and not scaling.weights:
        chosen = queries.version_in(project, scaling.scheduler) if scaling.scheduler else None
        why = (
            "this project has no agent of Siren's"
            if chosen is None
            else f"{chosen} decides only how many actors"
        )
        return [
            Problem(
                FIELD,
                f"Scheduler ({FIELD}): {why}. Put an agent's weights into the spec, or take another scaling policy.",
            )
        ]
    if not isinstance(scaling, Learned) or scaling.weights or _chosen(project, scaling) is not None:
        return []
    if not queries.versions_of(project).exists():
        sentence = (
            f"Scheduler ({FIELD}): none is trained in this project yet. Train one under Schedulers, or take another"
            " scaling policy."
        )
    else:
        sentence = f"Scheduler ({FIELD}): choose one of this project's trained schedulers."
    return [Problem(FIELD, sentence)]


def _chosen(project: Any, scaling: object) -> Version | None:
    if not isinstance(scaling, Learned) or not scaling.scheduler:
        return None
    return queries.version_in(project, scaling.scheduler)
