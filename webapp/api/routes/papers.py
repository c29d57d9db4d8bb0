"""The papers' figures with their results here, and experiments, read from stored results."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.conf import settings
from django.http import Http404
from django.urls import reverse

from webapp.api.router import ApiRouter
from webapp.api.schemas.comparing import IntervalShape
from webapp.api.schemas.papers import ExperimentResult, ExperimentShape, FigureShape, VerdictShape
from webapp.papers import pages
from webapp.papers.figures import FIGURES, PaperFigure, figures_of, find_result, result_names

router = ApiRouter(tags=["the papers"])


@router.get("/figures", response=list[FigureShape], summary="The papers' figures and the result of each")
def list_figures() -> list[FigureShape]:
    """All figures of both papers, also those without a repetition. They belong to the installation."""
    return [_figure(one) for one in FIGURES]


@router.get("/experiments", response=list[ExperimentShape], summary="Stored experiments")
def list_experiments() -> list[ExperimentShape]:
    found = [(name, results) for name in result_names() if (results := find_result(name))]
    return [ExperimentShape(**_experiment(name, results)) for name, results in found]


@router.get(
    "/experiments/{experiment}", response=ExperimentResult, summary="One experiment, with its verdicts"
)
def get_experiment(experiment: str) -> ExperimentResult:
    results = find_result(experiment)
    if results is None:
        raise Http404("There is no stored result of that name.")
    return ExperimentResult(
        **_experiment(experiment, results),
        oracle=results.get("oracle", ""),
        can_claim=results.get("can_claim", ""),
        beside=results.get("beside", ""),
        figures=[_figure(one) for one in figures_of(experiment)],
        claims=[_verdict(pages.verdict(one)) for one in results["verdicts"]],
        **{name: results.get(name, []) for name in ("arms", "tables", "costs", "made_with")},
        targets=results.get("targets", {}),
    )


def _experiment(name: str, results: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "title": results["title"],
        "kind": results.get("kind", "experiment"),
        "question": results.get("question", ""),
        "runs": results.get("runs"),
        "runs_complete": results.get("runs_complete"),
        "complete": bool(results.get("complete", True)),
        "verdicts": dict(Counter(one["verdict"] for one in results.get("verdicts", []))),
        "repeats": [one.key for one in figures_of(name)],
        "url": settings.STARLING_BASE_URL + reverse("papers:experiment", args=[name]),
    }


def _figure(one: PaperFigure) -> FigureShape:
    row = pages.figure_row(one)
    return FigureShape(
        key=one.key,
        paper=one.paper,
        number=one.number,
        shows=one.shows,
        says=one.says,
        remark=one.remark,
        verdict=row.word,
        leading=None if row.leading is None else _verdict(row.leading),
        experiments=[name for name, _ in row.links],
    )


def _verdict(one: pages.Verdict) -> VerdictShape:
    return VerdictShape(
        word=one.word,
        claim=one.what,
        ours=one.ours,
        theirs=one.theirs,
        where=one.where,
        environments=one.environments,
        figure=one.figure,
        interval=None if one.interval is None else IntervalShape(**one.interval),
        paper=one.paper,
        reason=one.reason,
        label=one.label,
        primary=one.primary,
        repeats=list(one.repeats),
    )
