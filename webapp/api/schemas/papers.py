"""Schemas of experiments, and of the papers' figures that they repeat."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from webapp.api.schemas.comparing import IntervalShape


class VerdictShape(BaseModel):
    """A claim, our figure with its interval, and the paper's."""

    word: str = Field(description="holds, does not hold, undecided, open, shown, …")
    claim: str
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


class FigureShape(BaseModel):
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
