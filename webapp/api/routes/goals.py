"""Dollars to the goal: what it took to get to a task's reference return."""

from __future__ import annotations

from typing import Annotated

from ninja import Query
from pydantic import BaseModel, Field

from webapp.api.problems import ApiRefused
from webapp.api.router import ApiRouter, ViewersProject
from webapp.api.schemas import Usd
from webapp.comparing.goal_board import board_of
from webapp.comparing.goal_results import measured_rows, references

router = ApiRouter(tags=["comparing"])


class GoalRowShape(BaseModel):
    """Runs of one algorithm, scaling policy and cloud. Medians are null if fewer than half of the runs got there."""

    algorithm: str
    policy: str
    cloud: str
    money: str = Field(description="simulated or emulated, for money that no one pays; empty for real money.")
    runs: int
    reached: int
    by_training: int = Field(
        description="So many of the runs were never evaluated: their smoothed training return counts."
    )
    median_usd: Usd | None
    median_s: float | None
    job: str = Field(description="The run that got there for least; launch its spec to run the like.")


class MeasuredRowShape(BaseModel):
    """An arm of a stored experiment, on a simulated cloud, to the experiment's own goal."""

    experiment: str
    setting: str
    cloud: str
    goal: float
    runs: int
    reached: int
    median_usd: Usd | None
    median_s: float | None


class BoardShape(BaseModel):
    subject: str
    goal: float = Field(description="The task's reference return.")
    rows: list[GoalRowShape] = Field(description="The project's finished jobs, cheapest first.")
    measured: list[MeasuredRowShape]


@router.get("/projects/{slug}/goals", summary="Dollars and minutes to a task's reference")
def get_goals(
    project: ViewersProject,
    subject: Annotated[
        str, Query(max_length=100, description="What is learned, such as Hopper-v5.")
    ] = "CartPole-v1",
) -> BoardShape:
    board = board_of(project, subject)
    if board is None:
        known = ", ".join(references())
        why = f"{subject} has no reference return."
        raise ApiRefused(422, "subject", "There is no board.", why, f"Choose one of {known}.")
    return BoardShape(
        subject=subject,
        goal=board.goal,
        rows=[
            GoalRowShape(
                algorithm=row.setting.algorithm,
                policy=row.setting.policy,
                cloud=row.setting.cloud,
                money=row.setting.money,
                runs=row.runs,
                reached=row.reached,
                by_training=row.trained,
                median_usd=row.cost_picodollars,
                median_s=row.time_s,
                job=row.job,
            )
            for row in board.rows
        ],
        measured=[
            MeasuredRowShape(
                experiment=row.experiment,
                setting=row.arm,
                cloud=row.venue,
                goal=row.goal,
                runs=row.runs,
                reached=row.reached,
                median_usd=row.cost_picodollars,
                median_s=row.time_s,
            )
            for row in measured_rows(subject)
        ],
    )
