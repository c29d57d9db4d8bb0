"""The papers' figures with their results here, and experiments, read from stored results."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.conf import settings
from django.http import Http404
from django.urls import reverse
from pydantic import BaseModel, Field

from webapp.api.router import ApiRouter
from webapp.api.schemas import IntervalShape, Shape
from webapp.comparing.papers import pages
from webapp.comparing.papers.figures import FIGURES, PaperFigure, figures_of, find_result, result_names
from webapp.comparing.papers.verdicts import verdict

router = ApiRouter(tags=["the papers"])


class VerdictShape(Shape):
    """A claim, our figure with its interval, and the paper's."""

    word: str = Field(description="holds, does not hold, undecided, open, shown, …")
    claim: str = Field(validation_alias="what")
    ours: str
    theirs: str
    where: str
    environments: str
    figure: str = Field(description="In words; empty where there is none yet.")
    interval: IntervalShape | None = Field(description="The figure, with its 95 % interval.")
    paper: str = Field(description="What the paper says.")
    reason: str
    label: str = Field(description="What our figure rests on: learned, assumed timing, bill, measured.")
    primary: bool
    repeats: list[str] = Field(description="Keys of figures.")


class FigureShape(Shape):
    """A figure or table of a paper, and its result here."""

    key: str
    paper: str
    number: str
    shows: str
    says: str = Field(description="What the paper says.")
    remark: str = Field(description="How the repetition differs, or why there is none.")
    verdict: str
    leading: VerdictShape | None = Field(description="The claim that answers first.")
    experiments: list[str] = Field(description="What is stored of it.")


class ExperimentShape(BaseModel):
    """A stored experiment or calculation."""

    name: str
    title: str
    kind: str = Field(description="experiment: trained, seed by seed; calculation: without training.")
    question: str
    runs: int | None
    runs_complete: int | None
    complete: bool
    verdicts: dict[str, int] = Field(description="The number of claims by verdict.")
    repeats: list[str] = Field(description="Keys of the papers' figures.")
    url: str = Field(description="Its page.")


class ExperimentResult(ExperimentShape):
    oracle: str = Field(description="The check that would show that it is wrong.")
    can_claim: str
    beside: str = Field(description="What else is known of it.")
    figures: list[FigureShape]
    claims: list[VerdictShape]
    targets: dict[str, float]
    arms: list[dict[str, Any]] = Field(description="What was run: returns and costs by seed, and curves.")
    tables: list[dict[str, Any]]
    costs: list[dict[str, Any]]
    made_with: list[dict[str, Any]]


@router.get("/figures", summary="The papers' figures and the result of each")
def list_figures() -> list[FigureShape]:
    """All figures of both papers, also those without a repetition. They belong to the installation."""
    return [_figure(figure) for figure in FIGURES]


@router.get("/experiments", summary="Stored experiments")
def list_experiments() -> list[ExperimentShape]:
    listed = [(name, results) for name in result_names() if (results := find_result(name))]
    return [ExperimentShape(**_experiment(name, results)) for name, results in listed]


@router.get("/experiments/{experiment}", summary="One experiment, with its verdicts")
def get_experiment(experiment: str) -> ExperimentResult:
    results = find_result(experiment)
    if results is None:
        raise Http404("There is no stored result of that name.")
    return ExperimentResult(
        **_experiment(experiment, results),
        oracle=results.get("oracle", ""),
        can_claim=results.get("can_claim", ""),
        beside=results.get("beside", ""),
        figures=[_figure(figure) for figure in figures_of(experiment)],
        claims=[VerdictShape.of(verdict(claim)) for claim in results["verdicts"]],
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
        "verdicts": dict(Counter(claim["verdict"] for claim in results.get("verdicts", []))),
        "repeats": [figure.key for figure in figures_of(name)],
        "url": settings.STARLING_BASE_URL + reverse("papers:experiment", args=[name]),
    }


def _figure(figure: PaperFigure) -> FigureShape:
    row = pages.figure_row(figure)
    return FigureShape.of(
        figure, verdict=row.word, leading=row.leading, experiments=[name for name, _ in row.links]
    )
