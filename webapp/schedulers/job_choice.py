"""Trained schedulers in jobs: the choices of forms, the problems of a choice, and the spec with its weights."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from training.scaling.learned import Learned
from training.scaling.siren import Siren
from webapp.accounts.models import Project
from webapp.formatting import display_usd, plural
from webapp.jobs.form.spec_fields import Named
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.spec import JobSpec
from webapp.schedulers import queries
from webapp.schedulers.models import Version
from webapp.schedulers.text import choices, subject, worth_of

FIELD = "training.scaling.scheduler"
_OFFERED = 50
_POLICIES = {"minionsrl": "learned", "siren": "siren"}
"""The scaling policy that decides with an agent of this kind."""


def list_options(project: Project) -> dict[str, list[Named]]:
    """The project's schedulers by the kind of their scaling policy, newest first."""
    options: dict[str, list[Named]] = {"learned": [], "siren": []}
    for one in queries.versions_of(project)[:_OFFERED]:
        options[_POLICIES[one.training.parsed_spec.kind]].append(Named(one.key, str(one), _words(one)))
    return options


def _words(version: Version) -> str:
    spec, facts = version.training.parsed_spec, version.facts
    count, worth = facts["episodes"], worth_of(version)
    after = plural(count, "real episode") if count else "rehearsals only"
    return (
        f"{worth.word}: {worth.sentence} Chooses from {choices(spec)}. Trained for {subject(spec)} up to a"
        f" {spec.workload.score.name} of {spec.target:g}, by {after}; that took"
        f" {display_usd(facts['cost_picodollars'])} of simulated money."
    )


def empty_text(project: Project) -> SafeString:
    """The hint below the select of a project without schedulers."""
    address = reverse("schedulers:list", args=[project.slug])
    return format_html('No scheduler is trained yet. <a href="{}">Train one under Schedulers.</a>', address)


def fill_in_weights(project: Project, spec: JobSpec) -> JobSpec:
    """The spec with its scheduler's weights and settings; unchanged if it names no scheduler."""
    scaling = spec.training.scaling
    version = _chosen(project, scaling)
    if version is None:
        return spec
    policy = version.training.parsed_spec.policy(version.weights, explore=False)
    follows = {"scheduler": version.key, "explore": getattr(scaling, "explore", False)}
    training = spec.training.model_copy(update={"scaling": policy.model_copy(update=follows)})
    return spec.model_copy(update={"training": training})


def obstacles(project: Project, spec: JobSpec) -> Sequence[SpecProblem]:
    """Problems of the job's choice of a scheduler; empty if there are none."""
    scaling, score = spec.training.scaling, spec.training.score
    if isinstance(scaling, Siren) and score.higher_is_better:
        sentence = (
            "Scaling policy (training.scaling.kind): Siren decides by a loss, and this job is judged by its"
            f" {score.name}. Take MinionsRL or another policy."
        )
        return [SpecProblem("training.scaling.kind", sentence)]
    if not isinstance(scaling, Learned | Siren) or scaling.weights or _chosen(project, scaling) is not None:
        return []
    other = queries.version_in(project, scaling.scheduler) if scaling.scheduler else None
    mine = [kind for kind, policy in _POLICIES.items() if policy == scaling.kind]
    if other is not None and other.training.parsed_spec.kind not in mine:
        words = f"{other} chooses from {choices(other.training.parsed_spec)}, which this policy does not"
        sentence = f"Scheduler ({FIELD}): {words}. Choose one that was trained for it."
    elif not any(version.training.parsed_spec.kind in mine for version in queries.versions_of(project)):
        sentence = (
            f"Scheduler ({FIELD}): none is trained in this project yet. Train one under Schedulers, or take another"
            " scaling policy."
        )
    else:
        sentence = f"Scheduler ({FIELD}): choose one of this project's trained schedulers."
    return [SpecProblem(FIELD, sentence)]


def _chosen(project: Project, scaling: object) -> Version | None:
    """The version that decides for this policy; None if it names none, or one of another kind."""
    if not isinstance(scaling, Learned | Siren) or not scaling.scheduler:
        return None
    version = queries.version_in(project, scaling.scheduler)
    if version is None or _POLICIES[version.training.parsed_spec.kind] != scaling.kind:
        return None
    return version
