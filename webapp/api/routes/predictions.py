"""What if a running job had other actors or another limit: predicted, applied, and judged at its end."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from ninja import Query
from pydantic import BaseModel, Field

from webapp.api.auth import Token
from webapp.api.router import ApiRouter, EditorsJob, Person, ViewersJob
from webapp.api.schemas import Request, Shape, Usd
from webapp.comparing.predictions import services, text
from webapp.comparing.predictions.models import Prediction, PredictionState
from webapp.comparing.predictions.predict import WhatIf, predict
from webapp.jobs.models import Job
from webapp.money.amounts import PICODOLLARS_PER_USD, picodollars

router = ApiRouter(tags=["jobs"])
_MOST_ACTORS = 100_000


class Wish(Request):
    """What changes; null: as it is."""

    actors: int | None = Field(None, ge=1, le=_MOST_ACTORS, description="In every later round.")
    limit_usd: Decimal | None = Field(None, gt=0, le=1_000_000, decimal_places=6)


class FiguresShape(BaseModel):
    p10: float
    p50: float
    p90: float


class UsdShape(BaseModel):
    p10: Usd
    p50: Usd
    p90: Usd


class PredictionShape(Shape):
    """Totals at the job's end; a tenth of predictions is meant to end below p10, and a tenth above p90."""

    round_no: int = Field(description="The round that it was made after.")
    actors: int | None = Field(description="In every later round; null: as the scaling policy decides.")
    limit_usd: Usd
    ends_by: Literal["steps", "rounds", "minutes", "budget"]
    time_s: FiguresShape
    usd: UsdShape
    score: FiguresShape | None = Field(description="Null where the curve is too short.")


class KeptPredictionShape(PredictionShape):
    id: int
    state: Literal["open", "judged", "void"]
    outcome: str = Field(description="What came of it, as a sentence; empty while the job runs.")


@router.get(
    "/projects/{slug}/jobs/{job_id}/prediction", summary="What if: a running job's end, cost and score"
)
def get_prediction(
    job: ViewersJob,
    actors: Annotated[int | None, Query(ge=1, le=_MOST_ACTORS)] = None,
    limit_usd: Annotated[Decimal | None, Query(gt=0, le=1_000_000, decimal_places=6)] = None,
) -> PredictionShape:
    """Nothing changes."""
    return _predicted(predict(job, actors=actors, limit_picodollars=_limit(limit_usd)))


@router.post(
    "/projects/{slug}/jobs/{job_id}/predictions",
    auth=Token("budget"),
    response=201,
    summary="Apply other actors or another limit, and keep the prediction",
)
def apply_prediction(job: EditorsJob, person: Person, wish: Wish) -> KeptPredictionShape:
    """The limit is not below what is spent, or reserved for calls in flight."""
    limit = _limit(wish.limit_usd)
    return _kept(job, services.apply(job=job, user=person, actors=wish.actors, limit_picodollars=limit))


@router.get("/projects/{slug}/jobs/{job_id}/predictions", summary="A job's kept predictions, newest first")
def list_predictions(job: ViewersJob) -> list[KeptPredictionShape]:
    """At most 100."""
    return [_kept(job, row) for row in Prediction.objects.filter(job=job)[:100]]


def _limit(limit_usd: Decimal | None) -> int | None:
    return None if limit_usd is None else picodollars(limit_usd)


def _predicted(what_if: WhatIf) -> PredictionShape:
    end = what_if.end
    usd = [round(dollars * PICODOLLARS_PER_USD) for dollars in (end.usd.p10, end.usd.p50, end.usd.p90)]
    return PredictionShape(
        round_no=what_if.points[-1].round_no,
        actors=what_if.actors,
        limit_usd=what_if.limit_picodollars,
        ends_by=end.ends_by,
        time_s=FiguresShape(p10=end.time_s.p10, p50=end.time_s.p50, p90=end.time_s.p90),
        usd=UsdShape(p10=usd[0], p50=usd[1], p90=usd[2]),
        score=None if what_if.score is None else FiguresShape(**what_if.score._asdict()),
    )


def _kept(job: Job, row: Prediction) -> KeptPredictionShape:
    score = job.declaration.score
    scored = row.score_p10 is not None
    outcome = row.reason if row.state == PredictionState.VOID else ""
    if row.state == PredictionState.JUDGED:
        outcome = text.verdict(row, score.name, score.decimals)
    return KeptPredictionShape.of(
        row,
        limit_usd=row.limit_picodollars,
        time_s=FiguresShape(p10=row.time_p10_s, p50=row.time_p50_s, p90=row.time_p90_s),
        usd=UsdShape(
            p10=row.cost_p10_picodollars, p50=row.cost_p50_picodollars, p90=row.cost_p90_picodollars
        ),
        score={"p10": row.score_p10, "p50": row.score_p50, "p90": row.score_p90} if scored else None,
        outcome=outcome,
    )
