"""The checklist of a launch: connection, quota, budget, environment; each row says what to do if it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from django.db.models import Q
from django.urls import reverse

from training.rl.environments import catalogue
from training.spec import TrainingSpec
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK
from webapp.formatting import Tone, display_usd, format_score, plural
from webapp.jobs import services
from webapp.jobs.form.learner_places import learner_words
from webapp.jobs.form.spec_problems import CONNECTION, SpecProblem
from webapp.jobs.launch import cloud_requirements, launch_budget
from webapp.jobs.launch.job_memory import memory_obstacle, memory_sentence
from webapp.jobs.launch.platforms import requirements_of
from webapp.jobs.launch.project_choices import schedulers
from webapp.jobs.launch.requirements import PRICE_IT, REGION, connection_of
from webapp.jobs.lineage import Source
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import display_least_usd, exact_usd, picodollars
from webapp.money.budget_chain import headroom
from webapp.money.models import Budget, BudgetScope
from webapp.money.queries import as_of
from webapp.trackers import queries as trackers

_PACKAGES = {"MuJoCo": "mujoco", "Atari": "ale_py"}
_OF_LEARNERS = ("training.loop.", "platform.learner")
"""Problems of fields with these beginnings are in the learners' row."""


@dataclass(frozen=True)
class ChecklistRow:
    """One row. `tone` is ok, warning or failed; `link` leads to the page that corrects it."""

    title: str
    tone: Tone
    words: str
    link: str = ""
    link_words: str = ""
    cap_usd: str = ""
    """Of the budget's row: what the budgets above leave, so that no launch costs more. Empty if there are none."""

    @property
    def icon(self) -> str:
        return {"ok": "check-circle-fill", "warning": "exclamation-triangle-fill"}.get(
            self.tone, "x-octagon-fill"
        )

    @property
    def state(self) -> str:
        return {"ok": "ok", "warning": "look"}.get(self.tone, "missing")


def fields_row(faults: Sequence[str]) -> ChecklistRow:
    """Return the row for a form with invalid fields; nothing else is checked before they are valid."""
    more = f" {len(faults) - 1} more." if len(faults) > 1 else ""
    return ChecklistRow("Fields", "failed", f"{faults[0]}{more}")


def folded(rows: Sequence[ChecklistRow]) -> dict[str, list[ChecklistRow]]:
    """Return the context of the list: what wants something (`checks`), and what passed."""
    return {
        "checks": [row for row in rows if row.tone != "ok"],
        "passed": [row for row in rows if row.tone == "ok"],
    }


def checklist(
    project: Project, user: User, spec: JobSpec, *, count: int = 1, made_from: Source | None = None
) -> list[ChecklistRow]:
    """Return every row for a valid spec that is launched with `count` seeds."""
    problems, undecided = cloud_requirements.obstacles(project, spec), schedulers().obstacles(project, spec)
    too_large = [problem for problem in problems if problem == memory_obstacle(spec)]
    problems = [problem for problem in problems if problem not in too_large]
    spec = schedulers().fill_in_weights(project, cloud_requirements.fill_in_setup(project, spec))
    rows = [_credentials(project, spec, problems), _quota(project, spec, problems)]
    if spec.training.scaling.kind in ("learned", "siren"):
        rows.append(_of("Scheduler", undecided, "It is trained and decides each round."))
    if spec.training.scaling.memory_range_mb is not None:
        rows.append(_memory(spec))
    if not undecided:  # without a number of actors the cost of a round is unknown
        rows.append(_budget(project, user, spec, count))
    rows += [*_subject(spec), _learner(spec, problems)]
    if words := memory_sentence(spec):
        rows.append(_of("Memory needed", too_large, words))
    rows += _trackers(project)
    if made_from is not None and (obstacles := made_from.obstacles(spec)):
        rows.append(_of("Checkpoint", obstacles, ""))
    return rows


def _learner(spec: JobSpec, problems: Sequence[SpecProblem]) -> ChecklistRow:
    if of_learners := [problem for problem in problems if problem.path.startswith(_OF_LEARNERS)]:
        return _of("Learner", of_learners, "")
    unpriced = any(problem.path == REGION for problem in problems)
    return ChecklistRow("Learner", "failed" if unpriced else "ok", learner_words(spec))


def _memory(spec: JobSpec) -> ChecklistRow:
    """Return the row of a policy that wishes for memory: which sizes there are."""
    there_are = spec.platform.memory_sizes_mb(spec.training.memory_mb)
    if len(there_are) == 1:
        words = f"Here every function has {there_are[0]:,} MB: the policy decides only how many there are."
        return ChecklistRow("Memory", "warning", words)
    shown = f"from {there_are[0]:,} to {there_are[-1]:,} MB"
    return ChecklistRow(
        "Memory", "ok", f"The policy chooses among {len(there_are):,} sizes {shown}, round by round."
    )


def _trackers(project: Project) -> Iterator[ChecklistRow]:
    """Yield the row of the project's trackers, if one is on. A tracker that takes nothing prevents no launch."""
    on = list(trackers.trackers_of(project).filter(on=True))
    if problems := [words for tracker in on if (words := trackers.problem_of(tracker))]:
        page = reverse("trackers:list", args=[project.slug])
        yield ChecklistRow(
            "Trackers", "warning", f"{' '.join(problems)} The job runs without it.", page, "Trackers"
        )
    elif on:
        names = " and ".join(f"{one.get_kind_display()} ({trackers.server_of(one)})" for one in on)
        yield ChecklistRow("Trackers", "ok", f"Every round goes to {names}.")


def _of(title: str, found: Sequence[SpecProblem], fine: str) -> ChecklistRow:
    return ChecklistRow(title, "failed" if found else "ok", " ".join(one.sentence for one in found) or fine)


def _credentials(project: Project, spec: JobSpec, problems: Sequence[SpecProblem]) -> ChecklistRow:
    title, page = "Credentials", reverse("connections:list", args=[project.slug])
    if spec.platform.cloud is None:
        row = requirements_of(spec.platform)
        return _of(title, row.missing_credentials(spec, problems), row.credentials_words)
    connection = connection_of(project, spec)
    missing = [problem for problem in problems if problem.path == CONNECTION]
    if missing or connection is None:
        to = reverse("connections:detail", args=[project.slug, connection.pk]) if connection else page
        words = " ".join(problem.sentence for problem in missing) or "Choose a connection."
        return ChecklistRow(
            title, "failed", words, to, "Open it under Clouds" if connection else "Connect an account"
        )
    emulated = ", emulated here" if connection.emulated else ""
    account = connection.account_id or connection.name
    return ChecklistRow(
        title, "ok", f"{connection.name}: {account}, {connection.region}{emulated}; its last test passed."
    )


def _quota(project: Project, spec: JobSpec, problems: Sequence[SpecProblem]) -> ChecklistRow:
    title, most = "Quota", spec.training.scaling.largest
    # The others have rows of their own.
    mine = [
        problem
        for problem in problems
        if problem.path not in (CONNECTION, REGION) and not problem.path.startswith(_OF_LEARNERS)
    ]
    obstacles = [*spec.check_limits(services.limits()), *mine]
    if obstacles:
        return _of(title, obstacles, "")
    allowed = services.limits().actors(spec.platform.kind)
    words = f"At most {plural(most, 'actor')}; this installation allows a job {allowed:,}"
    if (connection := connection_of(project, spec)) is not None:
        words += requirements_of(spec.platform).limit_words(connection)
    return ChecklistRow(title, "ok", f"{words}.")


def _budget(project: Project, user: User, spec: JobSpec, count: int) -> ChecklistRow:
    title, least = "Budget", launch_budget.least_of(spec)
    if isinstance(least, str):
        return ChecklistRow(title, "failed", f"Without a price no budget can be kept: {least}. {PRICE_IT}")
    refused = launch_budget.too_little_for_seeds(spec, count) if count > 1 else []
    if refused := refused or launch_budget.too_little(spec, launch_budget.Needs(least, least)):
        return _of(title, refused, "")
    wanted = picodollars(spec.budget_usd)
    link = reverse("budgets:list", args=[project.slug])
    above = sorted(_above(project, user, spec), key=headroom)
    left = exact_usd(headroom(above[0])) if above else ""
    if above and headroom(above[0]) < count * least:
        words = (
            f"{_named(above[0])} has {display_usd(headroom(above[0]))} free; to begin takes"
            f" {display_least_usd(count * least)}."
        )
        return ChecklistRow(title, "failed", words, link, "Budgets", left)
    if above and headroom(above[0]) < wanted:
        words = (
            f"{_named(above[0])} has {display_usd(headroom(above[0]))} free, less than this launch's"
            f" {display_usd(wanted)}: it may stop the job first."
        )
        return ChecklistRow(title, "warning", words, link, "Budgets", left)
    first = (
        f"the first {spec.training.round_name} may cost {display_least_usd(least)}"
        if least
        else f"{spec.training.declaration.say('{a_round}')} costs nothing of its own"
    )
    room = f"; {_named(above[0])} has {display_usd(headroom(above[0]))} free" if above else ""
    return ChecklistRow(title, "ok", f"{display_usd(wanted)} at most; {first}{room}.", cap_usd=left)


def _named(budget: Budget) -> str:
    return (
        f"“{budget.name}”, the limit of your jobs,"
        if budget.scope == BudgetScope.USER
        else f"“{budget.name}”"
    )


def _above(project: Project, user: User, spec: JobSpec) -> Iterator[Budget]:
    """Return the open budgets that the job would count toward."""
    scopes = (
        Q(scope__in=(BudgetScope.EVERYTHING, BudgetScope.PROJECT))
        | Q(scope=BudgetScope.USER, user=user)
        | Q(scope=BudgetScope.CLOUD, cloud=spec.platform.kind)
        | Q(scope=BudgetScope.TAG, tag__name__in=spec.tags)
        | Q(scope=BudgetScope.GROUP, group__name=spec.group)
    )
    rows = Budget.objects.filter(Q(project=None) | Q(project=project), scopes, closed_at=None)
    for budget in rows.select_related("group", "tag"):
        yield as_of(budget, SYSTEM_CLOCK.now())


def _subject(spec: JobSpec) -> Iterator[ChecklistRow]:
    if isinstance(spec.training, TrainingSpec):
        yield _installed(spec.training.subject)


def _installed(name: str) -> ChecklistRow:
    title = "Environment"
    entry = catalogue.ENTRIES.get(name)
    if entry is None:
        return ChecklistRow(
            title, "ok", f"{name} is installed. It is not in the catalogue, so no reference is known."
        )
    package = _PACKAGES.get(entry.family)
    if package is not None and find_spec(package) is None:
        words = f"{name} needs the package {package}, which is not installed here. The operator can add it."
        return ChecklistRow(title, "failed", words)
    known = (
        f"; reference {format_score(entry.reference_score, decimals=0)}"
        if entry.reference_score is not None
        else ""
    )
    return ChecklistRow(title, "ok", f"{name} is installed ({entry.family}){known}.")
