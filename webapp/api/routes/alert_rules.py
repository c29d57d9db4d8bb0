"""Alert rules of a project's own: list, add and remove."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from webapp.alerts import queries, rules
from webapp.api.auth import Token
from webapp.api.paging import RowId
from webapp.api.problems import ApiRefused
from webapp.api.router import ApiRouter, EditorsProject, Person, ViewersProject
from webapp.api.schemas import Request, Shape

router = ApiRouter(tags=["alerts"])


class NewRule(Request):
    text: Annotated[
        str,
        StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$"),
        Field(description=f"Such as {'; '.join(rules.EXAMPLES)}. Figures: {', '.join(rules.FIGURES)}."),
    ]


class RuleShape(Shape):
    """A rule that is held against each running job of the project, every half minute."""

    id: int
    text: str
    created_at: datetime


@router.get("/projects/{slug}/alert-rules", summary="Alert rules of the project")
def list_alert_rules(project: ViewersProject) -> list[RuleShape]:
    return [RuleShape.of(rule) for rule in queries.rules_of(project)]


@router.post("/projects/{slug}/alert-rules", auth=Token("jobs"), response=201, summary="Add an alert rule")
def add_alert_rule(project: EditorsProject, person: Person, rule: NewRule) -> RuleShape:
    """The same rule again is the one there is."""
    try:
        made = rules.add_rule(project=project, user=person, text=rule.text)
    except rules.RuleRefused as refusal:
        raise ApiRefused(409, "rule", "No rule was added.", str(refusal), "Then add it again.") from None
    return RuleShape.of(made)


@router.delete(
    "/projects/{slug}/alert-rules/{rule_id}", auth=Token("jobs"), response=204, summary="Remove an alert rule"
)
def remove_alert_rule(project: EditorsProject, rule_id: RowId) -> None:
    """Its open alerts end."""
    rules.remove_rule(rule=queries.rule_in(project, rule_id))
