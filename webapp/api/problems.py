"""Errors as `application/problem+json`: what, why and what to do, with the sentences of the pages."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from django import forms
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import BaseModel, Field

from cloud.timing.forecast import NoForecast
from webapp.accounts.services import MembershipError, ProjectRefused
from webapp.alerts.channels import ChannelRefused
from webapp.comparing.predictions.predict import NoPrediction
from webapp.connections.key_ring import KeysUnusable
from webapp.connections.services import ConnectionRefused
from webapp.database.storage_faults import storage_fault
from webapp.datasets.services import ChoiceRefused, DataRefused
from webapp.http.responses import GoneObject
from webapp.jobs.form.drafts import DraftRefused
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.services import SpecRefused
from webapp.money.budgets import BudgetRefused
from webapp.overview.projects.services import ProjectBusy
from webapp.reports.bills.bill_reading import NotTaken
from webapp.reports.report_builds import TooMany
from webapp.resources.profiling.services import ProfileRefused
from webapp.schedulers.services import TrainingRefused
from webapp.sharing.services import LinkRefused

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"


class FieldError(BaseModel):
    path: str = Field(description="The field, such as training.scaling.actors; empty for the whole.")
    sentence: str


class Problem(BaseModel):
    """RFC 9457, with the three fields of Starling's errors."""

    type: str = Field("about:blank", description="Which problem. Its text may change, this does not.")
    title: str
    status: int
    what: str = Field(description="What happened.")
    why: str = Field(description="Why.")
    fix: str = Field(description="What to do.")
    detail: str = Field(description="All three in one text.")
    instance: str = Field(description="The address of the request.")
    errors: list[FieldError] = []


class ApiRefused(Exception):
    """A refused request. It becomes a problem document."""

    def __init__(
        self,
        status: int,
        code: str,
        what: str,
        why: str,
        fix: str,
        errors: Sequence[SpecProblem] = (),
    ) -> None:
        super().__init__(f"{what} {why} {fix}".strip())
        self.status, self.code = status, code
        self.what, self.why, self.fix = what, why, fix
        self.errors = list(errors)


def spec_refused(found: Sequence[SpecProblem]) -> ApiRefused:
    """A refused document, with a sentence for each field."""
    why = " ".join(problem.sentence for problem in found[:3]) + (" …" if len(found) > 3 else "")
    return ApiRefused(
        422, "invalid", "The request was not carried out.", why, "Correct what errors lists.", found
    )


def cleaned(form: forms.Form, given: Iterable[str] = ()) -> dict[str, Any]:
    """The values of a page's form that a program filled in; a refusal with the form's sentences if it is invalid.

    `given` names what was sent: what the form has no field for is refused too. What was wrong is never repeated, for
    it may be a secret.
    """
    strange = [name for name in given if name not in form.fields]
    if form.is_valid() and not strange:
        return form.cleaned_data
    allowed = ", ".join(form.fields)
    found = [SpecProblem(name, f"{name} does not belong here; what does is: {allowed}.") for name in strange]
    for name, words in form.errors.items():
        label = f"{form.fields[name].label} ({name}): " if name in form.fields else ""
        found += [SpecProblem(name if label else "", f"{label}{word}") for word in words]
    raise spec_refused(found)


def answer(request: HttpRequest, refused: ApiRefused) -> HttpResponse:
    problem = Problem(
        type=f"urn:starling:{refused.code}",
        title=HTTPStatus(refused.status).phrase,
        status=refused.status,
        what=refused.what,
        why=refused.why,
        fix=refused.fix,
        detail=str(refused),
        instance=request.path,
        errors=[FieldError(path=error.path, sentence=error.sentence) for error in refused.errors],
    )
    made = HttpResponse(problem.model_dump_json(), content_type=MEDIA_TYPE, status=refused.status)
    if refused.status == 401:
        made["WWW-Authenticate"] = 'Bearer realm="Starling"'
    return made


# Errors of services, which say why: problem type, what did not happen, what to do.
_BY_SERVICES: dict[type[Exception], tuple[str, str, str]] = {
    NotTaken: ("bill", "The bill was not accepted.", "List the bills that were read."),
    NoPrediction: ("prediction", "Nothing was predicted or changed.", "Ask again once that has changed."),
    BudgetRefused: ("budget", "Nothing was changed.", "Give a higher limit, or wait."),
    ChannelRefused: ("channel", "Nothing was changed.", "Correct that, and send it again."),
    ConnectionRefused: ("connection", "Nothing was changed.", "Read the connection, and try again then."),
    DataRefused: ("data", "Nothing was changed.", "Read the data set, and try again then."),
    DraftRefused: ("draft", "Nothing was saved.", "Then save it again."),
    KeysUnusable: ("keys", "Nothing was stored.", "Ask the operator to correct that; then send it again."),
    LinkRefused: ("link", "Nothing was shared.", "Correct that, and send it again."),
    MembershipError: ("members", "Nothing was changed.", "See who is a member, and try again."),
    NoForecast: ("no-forecast", "There is no forecast.", "Launch it without."),
    ProjectBusy: ("project", "Nothing was archived.", "End what runs, or send end_running."),
    ProjectRefused: ("project", "Nothing was changed.", "Correct that, and send it again."),
    ProfileRefused: ("profile", "No memory is profiled.", "Change the request, or wait."),
    TooMany: ("too-many", "No report was requested.", "Ask again later."),
}


def refusal_of(error: Exception) -> ApiRefused:
    """Any exception as a refusal. An unexpected one is logged and reported as a fault of Starling."""
    for kind, (about, what, fix) in _BY_SERVICES.items():
        if isinstance(error, kind):
            return ApiRefused(409, about, what, str(error), fix)
    match error:
        case ApiRefused():
            return error
        case SpecRefused() | TrainingRefused():
            return spec_refused(error.problems)
        case ChoiceRefused():
            return spec_refused([SpecProblem(problem.field, problem.sentence) for problem in error.problems])
        case AuthenticationError():
            return ApiRefused(
                401,
                "no-token",
                "Nothing was read or changed.",
                "The request has no valid token: it is missing, mistyped, revoked, expired,"
                " or ended with an older password.",
                "Send “Authorization: Bearer starling_pat_…” with a token made under Account, Tokens.",
            )
        case ValidationError():
            return spec_refused([_parameter(each) for each in error.errors])
        case GoneObject():
            return ApiRefused(410, "gone", "Nothing was found.", str(error), "Leave it out from now on.")
        case Http404():
            why = str(error) or "There is no such thing."
            return ApiRefused(404, "absent", "Nothing was found.", why, "Check the address and the project.")
        case PermissionDenied():
            return ApiRefused(
                403, "role", "Nothing was changed.", str(error), "Use the token of such a person."
            )
        case HttpError():
            return _unreadable(error.status_code, str(error))
        case RequestDataTooBig():
            return _unreadable(413, "The request's body is too large.")
        case MultiPartParserError() | BadRequest() | SuspiciousOperation():
            why = str(error) or "It is no multipart/form-data."
            return _unreadable(400, why, "Send the file as `file` in multipart/form-data, as curl -F does.")
    log.exception("a request of the API failed", exc_info=error)
    if (fault := storage_fault(error)) is not None:
        return ApiRefused(fault.status, "storage", "It could not be stored.", fault.why, fault.fix)
    return ApiRefused(
        500,
        "fault",
        "The request failed.",
        "That is a fault of Starling, not of the request.",
        "Try once more; if it stays so, the site's log says more.",
    )


def _unreadable(
    status: int, why: str, fix: str = "Send JSON of at most 1 MB, as the description of the address says."
) -> ApiRefused:
    return ApiRefused(
        status if 400 <= status < 500 else 400,
        "unreadable",
        "The request was not understood.",
        why if why.endswith(".") else f"{why}.",
        fix,
    )


def _parameter(detail: dict[str, Any]) -> SpecProblem:
    """One of ninja's errors: where it is, and what pydantic says of it."""
    path = ".".join(str(part) for part in detail["loc"])
    message = str(detail["msg"]).removeprefix("Value error, ")
    return SpecProblem(path, f"{path}: {message[:1].lower()}{message[1:]}.".replace("..", "."))
