"""The papers' figures with what came of each here, and a page for each experiment. Read from stored results alone."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.accounts.access import signed_in
from webapp.comparing.papers import pages
from webapp.comparing.papers.figures import DRAWINGS, PAPERS, find_result


@signed_in
@require_safe
def figure_list(request: HttpRequest) -> HttpResponse:
    context = {
        "section": "papers",
        "papers": [(paper, pages.figure_rows(paper)) for paper in PAPERS],
        "others": pages.others(),
        "totals": pages.totals(),
        "drawings": DRAWINGS,
    }
    return render(request, "comparing/papers/list.html", context)


@signed_in
@require_safe
def experiment(request: HttpRequest, name: str) -> HttpResponse:
    results = find_result(name)
    if results is None:
        raise Http404("There is no stored result of that name.")
    return render(
        request, "comparing/papers/experiment.html", {"section": "papers", **pages.page_of(name, results)}
    )
