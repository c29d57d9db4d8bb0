"""The page of the board: a task's reference, and what it took to get there."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from webapp.accounts.access import project_page
from webapp.accounts.models import Project
from webapp.leaderboard.board import board_of, subjects_of
from webapp.leaderboard.results import measured_rows, measured_subjects, references, title_of

SHOWN_AT_ONCE = 8


@project_page()
@require_safe
def board(request: HttpRequest, project: Project) -> HttpResponse:
    """The board of the subject in the address, else of the one with most finished jobs."""
    own = subjects_of(project)
    known = list(dict.fromkeys([*own, *measured_subjects(), *references()]))
    wanted = request.GET.get("subject", "")
    subject = wanted if wanted in known else known[0]
    measured = measured_rows(subject)
    context = {
        "section": "compare",
        "subjects": [(name, title_of(name), own.get(name, 0)) for name in known],
        "subject": subject,
        "title": title_of(subject),
        "board": board_of(project, subject),
        "measured": measured[:SHOWN_AT_ONCE],
        "more_measured": measured[SHOWN_AT_ONCE:],
    }
    return render(request, "leaderboard/page.html", context)
