"""The pages of data sets: all of a project, and one with its columns, its choice and its classes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from training.data.readers.survey import TableSurvey
from training.data.shipped import SHIPPED
from webapp.accounts.access import live_page, person_of, project_action
from webapp.accounts.models import Project
from webapp.datasets import files, queries, services
from webapp.datasets.forms import ChoiceForm, UploadForm
from webapp.datasets.models import DataSet, DataState
from webapp.datasets.services import ChoiceRefused
from webapp.datasets.text import class_rows, column_rows, feature_words, status_of, table_words

_SHOWN = 50
_JOBS_SHOWN = 20


@live_page()
def data_set_list(request: HttpRequest, project: Project) -> HttpResponse:
    page = Paginator(queries.data_sets_of(project).defer("survey"), _SHOWN).get_page(request.GET.get("page"))
    rows = [
        {"data_set": one, "status": status_of(one), "features": feature_words(one) if one.facts else ""}
        for one in page
    ]
    context = {
        "section": "data",
        "page": page,
        "rows": rows,
        "shipped": SHIPPED.values(),
        "form": UploadForm(),
        "limit_mb": files.MOST_UPLOADED_BYTES // 1_000_000,
    }
    return render(request, "datasets/list.html", context)


@project_action("editor")
def data_set_upload(request: HttpRequest, project: Project) -> HttpResponse:
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, "Choose the file of a table first.")
        return redirect("datasets:list", project.slug)
    uploaded = form.cleaned_data["file"]
    made = services.accept_file(
        project=project,
        user=person_of(request),
        file_name=uploaded.name,
        file=uploaded.file,
        size=uploaded.size,
        name=form.cleaned_data["name"],
    )
    return redirect("datasets:detail", project.slug, made.pk)


@live_page()
def data_set_page(request: HttpRequest, project: Project, data_set_id: int) -> HttpResponse:
    return _page(request, queries.data_set_in(project, data_set_id))


@live_page()
def data_set_progress(request: HttpRequest, project: Project, data_set_id: int) -> HttpResponse:
    """The part of the page with the state, for a page that updates it."""
    data_set = queries.data_set_in(project, data_set_id, with_survey=False)
    return render(request, "datasets/progress.html", {"status": status_of(data_set)})


@project_action("editor")
def data_set_choose(request: HttpRequest, project: Project, data_set_id: int) -> HttpResponse:
    data_set = queries.data_set_in(project, data_set_id)
    if data_set.state == DataState.CHOOSING:
        form = ChoiceForm(request.POST, table=TableSurvey.model_validate(data_set.survey))
        if not form.is_valid():
            return _page(request, data_set, form)
        try:
            services.choose(data_set=data_set, choice=form.choice)
        except ChoiceRefused as refusal:
            form.add_problems(refusal.problems)
            return _page(request, data_set, form)
    return redirect("datasets:detail", project.slug, data_set.pk)


@project_action("editor")
def data_set_delete(request: HttpRequest, project: Project, data_set_id: int) -> HttpResponse:
    data_set = queries.data_set_to_delete(project, data_set_id)
    services.delete(data_set=data_set)
    messages.success(
        request, f"{data_set.name} is deleted. Jobs that learned from it, and what they cost, stay."
    )
    return redirect("datasets:list", project.slug)


def _page(request: HttpRequest, data_set: DataSet, form: ChoiceForm | None = None) -> HttpResponse:
    context: dict[str, Any] = {"section": "data", "data_set": data_set, "status": status_of(data_set)}
    if data_set.survey is not None:
        context |= _of_table(data_set, TableSurvey.model_validate(data_set.survey), form)
    if data_set.state == DataState.READY:
        jobs = list(queries.jobs_with(data_set)[:_JOBS_SHOWN])
        manifest = files.read_manifest(data_set.manifest)
        context |= {
            "classes": class_rows(data_set),
            "features": feature_words(data_set),
            "jobs": jobs,
            "in_use": queries.unfinished_jobs_with(data_set).count(),
            "shards_gone": files.missing_shards(manifest)
            if manifest is not None
            else data_set.facts["shards"],
        }
    refused = form is not None and bool(form.errors)
    return render(request, "datasets/detail.html", context, status=422 if refused else 200)


def _of_table(data_set: DataSet, table: TableSurvey, form: ChoiceForm | None) -> dict[str, Any]:
    """The table's columns and first rows, and the form of its choice."""
    chosen = data_set.choice or {}
    typed = form or ChoiceForm(None, table=table)
    leave_out = form.typed_out if form else set(chosen.get("leave_out", ()))
    as_text = form.typed_text if form else set(chosen.get("as_text", ()))
    shown, others = column_rows(table, leave_out, as_text, decided=data_set.choice is not None)
    return {
        "table": table,
        "table_words": table_words(table),
        "form": typed,
        "columns": shown,
        "other_columns": others,
        "names": [one.name for one in table.columns][: len(table.first_rows[0]) if table.first_rows else 0],
    }
