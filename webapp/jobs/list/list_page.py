"""The page of the list of jobs: search, columns, order and saved views, all in its URL; and bulk actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from webapp.accounts.access import person_of, project_action, project_page
from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK
from webapp.formatting import read_whole
from webapp.job_states import FILTERS
from webapp.jobs import queries
from webapp.jobs.form.presets import presets
from webapp.jobs.list import actions, run_table
from webapp.jobs.list.columns import BY_KEY, COLUMNS, USUAL, JobColumn, chosen_columns, render_rows
from webapp.jobs.list.search_query import FIGURES, WORDS, NotUnderstood, Term, parse
from webapp.jobs.list.seed_rows import Fold, Seeds, comparison_keys, fold_list, job_ids_of
from webapp.jobs.queries import Headings, headings_of

JOBS_A_PAGE = 50
UNDO = "archived_just_now"
"""The session key of the jobs that the next page offers to restore."""


@dataclass(frozen=True)
class ListQuery:
    """The parsed URL. `problem` says what of the search was not understood; then all jobs are shown."""

    question: str
    terms: tuple[Term, ...]
    problem: str
    order: str
    columns: list[JobColumn]
    unfolded: tuple[str, ...] = ()
    """Keys of the rows of seeds whose runs are shown."""

    @classmethod
    def of(cls, address: QueryDict) -> ListQuery:
        question, problem = address.get("q", "").strip(), ""
        terms: tuple[Term, ...] = ()
        try:
            terms = parse(question)
        except NotUnderstood as refusal:
            problem = str(refusal)
        columns = chosen_columns(",".join(address.getlist("columns")))
        unfolded = tuple(dict.fromkeys(filter(None, address.get("open", "").split(","))))
        return cls(question, terms, problem, run_table.order_of(address.get("sort", "")), columns, unfolded)

    def address(self, **instead: Any) -> str:
        """Return the query string, with some parameters replaced; defaults are left out."""
        keys = ",".join(column.key for column in self.columns)
        parts = {"q": self.question, "sort": self.order, "columns": keys, **instead}
        usual = {"q": "", "sort": run_table.FIRST, "columns": ",".join(USUAL), "page": 1, "open": ""}
        return "?" + urlencode(
            {key: value for key, value in parts.items() if value != usual.get(key)}, safe=":,"
        )

    def fold(self, seeds: Seeds, project: Project, page_no: int) -> Fold:
        """Return whether a row of seeds is unfolded, and the address that changes that."""
        is_open = seeds.key in self.unfolded
        others = [key for key in self.unfolded if key != seeds.key]
        shown = ",".join(others if is_open else [*others, seeds.key])
        group = reverse("comparing:group", args=[project.slug, seeds.group_id])
        return Fold(is_open, self.address(open=shown, page=page_no), group)


@project_page()
@require_safe
def job_list(request: HttpRequest, project: Project) -> HttpResponse:
    """List the project's jobs. With ?rows=1 only the table's rows, for live updates."""
    query = ListQuery.of(request.GET)
    matching = run_table.find_jobs(project, query.terms, query.order, SYSTEM_CLOCK.now())
    ids = matching.values_list("pk", flat=True)
    # Counting a search would read every job, so one query returns both the number and the page.
    folding, listed = fold_list(project, ids, read_all=bool(query.terms))
    page = Paginator(listed, JOBS_A_PAGE).get_page(request.GET.get("page"))
    shown = folding.entries(page.object_list)
    jobs = {job.pk: job for job in run_table.load_columns(job_ids_of(shown), query.columns)}
    headings = headings_of(jobs.values())
    columns = [column.headed(headings) for column in query.columns]
    folds = {one.key: query.fold(one, project, page.number) for one in shown if isinstance(one, Seeds)}
    rows = render_rows(shown, jobs, columns, reverse("jobs:list", args=[project.slug]), folds)
    context: dict[str, Any] = {"columns": columns, "rows": rows, "query": query}
    if request.GET.get("rows"):
        return render(request, "jobs/rows.html", context)
    context |= {
        "section": "jobs",
        "page": page,
        "count": page.paginator.count + len(folding.hidden),
        **_page_context(project, query, page, headings),
    }
    context["undo"] = request.session.pop(UNDO, None)
    return render(request, "jobs/list.html", context)


def _page_context(project: Project, query: ListQuery, page: Any, headings: Headings) -> dict[str, Any]:
    """Return the context of everything but the rows."""
    heads = [
        {
            "column": column.headed(headings),
            "sorted": query.order.removeprefix("-") == column.key,
            "descending": query.order.startswith("-"),
            "address": query.address(
                sort=column.key if query.order == f"-{column.key}" else f"-{column.key}"
            ),
        }
        for column in query.columns
    ]
    nothing = page.paginator.count == 0 and not query.question
    return {
        "heads": heads,
        "every_column": [(column.headed(headings), column in query.columns) for column in COLUMNS],
        "sorts": [column.headed(headings) for column in COLUMNS if column.order],
        "sorted_by": BY_KEY[query.order.removeprefix("-")].headed(headings),
        "filters": [
            (f"state:{key}", word, query.address(q=f"state:{key}")) for key, (word, _) in FILTERS.items()
        ],
        "all_jobs": query.address(q=""),
        "here": query.address(),
        "newer": query.address(page=page.previous_page_number()) if page.has_previous() else "",
        "older": query.address(page=page.next_page_number()) if page.has_next() else "",
        "views": run_table.saved_views(project),
        "words": WORDS.items(),
        "figures": FIGURES,
        "presets": presets().values(),
        "nothing_yet": nothing and not project.jobs.exists(),
    }


@project_action("editor")
def job_act(request: HttpRequest, project: Project) -> HttpResponse:
    """Apply one action to all chosen jobs; the action `compare` redirects to their comparison."""
    ids = list(dict.fromkeys(pk for value in request.POST.getlist("job") for pk in value.split()))
    action = request.POST.get("action", "")
    if action == "compare" and ids:
        chosen = urlencode([("of", key) for key in comparison_keys(project, request.POST.getlist("job"))])
        return redirect(f"{reverse('comparing:page', args=[project.slug])}?{chosen}")
    try:
        outcome = actions.act(
            project=project,
            user=person_of(request),
            action=action,
            job_ids=ids,
            tag=request.POST.get("tag", ""),
        )
    except (actions.NotPossible, actions.LabelRefused) as refusal:
        messages.error(request, str(refusal))
        return _back(request, project)
    if request.POST.get("stay") and outcome.done:
        return redirect("jobs:detail", project.slug, outcome.done[0])
    if action == "archive" and outcome.done:
        request.session[UNDO] = list(outcome.done)
    if outcome.refused:
        messages.warning(request, outcome.sentence)
    elif action != "archive":  # the list itself says so and offers to undo it
        messages.success(request, outcome.sentence)
    return _back(request, project)


@project_action("editor")
def view_change(request: HttpRequest, project: Project) -> HttpResponse:
    """Save the present view under a name, or delete one (`remove`: its id)."""
    remove = request.POST.get("remove", "")
    try:
        if remove:
            run_table.remove_view(project=project, view_id=read_whole(remove) or 0)
        else:
            name, address = request.POST.get("name", ""), request.POST.get("back", "")
            run_table.save_view(project=project, user=person_of(request), name=name, address=address)
    except run_table.ViewRefused as refusal:
        messages.error(request, str(refusal))
    return _back(request, project)


@project_action("editor")
def job_labels(request: HttpRequest, project: Project, job_id: str) -> HttpResponse:
    """Set a job's tags and note; or, with `archive`, `unarchive` or `delete`, do that."""
    job = queries.job_in(project, job_id)
    if "delete" in request.POST:
        actions.delete(job=job, user=person_of(request))
        messages.success(request, f"{job.name} is deleted. Its cost stays in the reports.")
        return redirect("jobs:list", project.slug)
    if "archive" in request.POST:
        actions.archive(job=job, user=person_of(request))
    elif "unarchive" in request.POST:
        actions.unarchive(job=job, user=person_of(request))
    else:
        names = actions.tag_names(request.POST.get("tags", ""))
        actions.set_note(job=job, text=request.POST.get("note", ""))
        actions.set_tags(job=job, names=names)
    return redirect("jobs:detail", project.slug, job.pk)


def _back(request: HttpRequest, project: Project) -> HttpResponse:
    """Redirect to the list with the same search. Only the query string comes from the form, never a URL."""
    question = request.POST.get("back", "").lstrip("?")
    return redirect(f"{reverse('jobs:list', args=[project.slug])}{'?' if question else ''}{question}")
