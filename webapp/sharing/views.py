"""The page on which a project's links are made, listed and revoked, and the pages behind the links."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_safe

from webapp.accounts.access import person_of, project_action, project_page
from webapp.accounts.fresh_sign_in import fresh_sign_in
from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs import queries
from webapp.jobs.charts.history import series_of
from webapp.jobs.models import Film, FilmState
from webapp.jobs.policies.policy_views import film_response
from webapp.sharing import services
from webapp.sharing.access import gone, link_kinds, shared_page
from webapp.sharing.allowlist import job_message, job_series
from webapp.sharing.models import SharedKind, SharedLink
from webapp.sharing.pages import context_of, film_card_of, version_of

_REPORT_FIELDS = ("range", "from", "to", "by", "prices", "job", "user", "cloud", "service", "tag")
_NEVER = "0"


class LinkForm(forms.Form):
    money = forms.BooleanField(label="Show money", required=False)
    days = forms.ChoiceField(
        label="Works for",
        choices=[*((str(days), f"{days} days") for days in services.DAYS), (_NEVER, "Until revoked")],
        initial="30",
    )
    sites = forms.CharField(
        label="Sites that may embed it",
        max_length=1000,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def choice(self) -> dict[str, Any]:
        """The form's values as `make_link` takes them."""
        cleaned = self.cleaned_data
        return {
            "money": cleaned["money"],
            "days": int(cleaned["days"]) or None,
            "sites": cleaned["sites"].replace(",", " ").split(),
        }


# Inside: who may share


@project_page("editor", archived=True)
@require_safe
@never_cache
def links(request: HttpRequest, project: Project) -> HttpResponse:
    """The project's links. With a subject in the address (`of`, or `report=1` with a report's query): those to it, and
    a form that makes one.
    """
    return _links_page(request, project, request.GET, LinkForm())


@project_action("editor")
@fresh_sign_in
@never_cache
@sensitive_variables("path", "link")
def make(request: HttpRequest, project: Project) -> HttpResponse:
    """Make a link. Only this response shows it."""
    form = LinkForm(request.POST)
    if form.is_valid():
        try:
            made, path = services.make_link(
                project=project, user=person_of(request), **_subject(request.POST), **form.choice()
            )
        except services.LinkRefused as refusal:
            form.add_error(None, str(refusal))
        else:
            link = f"{settings.STARLING_BASE_URL}{path}"
            return _links_page(request, project, request.POST, LinkForm(), made=made, link=link)
    return _links_page(request, project, request.POST, form, status=422)


@project_action("editor", archived=True)
def revoke(request: HttpRequest, project: Project, link_id: int) -> HttpResponse:
    link = get_object_or_404(SharedLink, pk=link_id, project=project)
    services.revoke_link(link)
    messages.success(
        request, f"The link to {link.title} is revoked. Pages that show it close within seconds."
    )
    subject = urlencode(_fields(_subject(request.POST)))
    return redirect(f"{reverse('sharing:links', args=[project.slug])}{'?' if subject else ''}{subject}")


def _subject(given: QueryDict) -> dict[str, Any]:
    """What an address or a form names: a report's query, or jobs and groups."""
    if given.get("report"):
        return {"report": {name: str(given[name]) for name in _REPORT_FIELDS if given.get(name)}}
    return {"of": given.getlist("of")}


@sensitive_variables("link")
def _links_page(
    request: HttpRequest,
    project: Project,
    given: QueryDict,
    form: LinkForm,
    *,
    made: SharedLink | None = None,
    link: str = "",
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {
        "section": "members",
        "form": form,
        "made": made,
        "url": link,
        "embed_url": f"{link}embed/" if link and made is not None and made.sites else "",
        **_links_and_subject(project, _subject(given)),
    }
    return render(request, "sharing/links.html", context, status=status)


def _links_and_subject(project: Project, subject: dict[str, Any]) -> dict[str, Any]:
    """What would be shared, by name and as hidden fields of the form, and the links to it. Without it, or with the
    reason why it cannot be shared: all links.
    """
    every_link = services.links_of(project)
    if not subject.get("of") and subject.get("report") is None:
        return {"subject": None, "rows": _rows(every_link)}
    try:
        described = services.describe(project, **subject)
    except services.LinkRefused as refusal:
        return {"subject": None, "refusal": str(refusal), "rows": _rows(every_link)}
    return {
        "subject": described["title"],
        "kind": described["kind"].label.lower(),
        "is_report": described["kind"] == SharedKind.REPORT,
        "unreal": getattr(described.get("job"), "unreal", ""),
        "fields": _fields(subject),
        "rows": _rows(services.links_to(project, described)),
        "every_count": every_link.count(),
    }


def _rows(links: QuerySet[SharedLink]) -> list[dict[str, Any]]:
    rows = list(links)
    ended = services.why_ended(rows, SYSTEM_CLOCK.now())
    return [{"link": row, "ended": ended[row.pk]} for row in rows]


def _fields(subject: dict[str, Any]) -> list[tuple[str, str]]:
    """The subject as fields of a form or an address."""
    if subject.get("report") is not None:
        return [("report", "1"), *subject["report"].items()]
    return [("of", key) for key in subject["of"] if key]


# Outside: people with a link


@shared_page
def shared(request: HttpRequest, link: SharedLink) -> HttpResponse:
    return _page(request, link, embedded=False)


@xframe_options_exempt
@shared_page
def embedded(request: HttpRequest, link: SharedLink) -> HttpResponse:
    """The same in a frame of other sites, if the link was made for any: this page alone may be framed, there alone."""
    if not link.sites:
        answer = gone(request)
    else:
        answer = _page(request, link, embedded=True)
    frames = link.sites or ["'none'"]
    answer._csp_replace = {"frame-ancestors": frames}  # type: ignore[attr-defined]
    return answer


def _page(request: HttpRequest, link: SharedLink, *, embedded: bool) -> HttpResponse:
    secret = _secret_of(request)
    context = {
        **context_of(link, request.GET.get("over", ""), embedded=embedded),
        "secret": secret,
        "embedded": embedded,
        "kind": link.kind,
        "expires_at": link.expires_at,
    }
    if link.kind == SharedKind.JOB:
        context["film_card"] = film_card_of(link, secret)
    else:
        context["version"] = version_of(link)
    return render(request, link_kinds(link), context)


@shared_page
def stream(request: HttpRequest, link: SharedLink) -> HttpResponse:
    """What a socket would have sent: of a job its messages after a number, of the others their version."""
    if link.job is None:
        return JsonResponse({"version": version_of(link)})
    after = queries.event_number(request.GET.get("after"))
    messages_ = queries.stream_messages(link.job, after)
    return JsonResponse([job_message(message, money=link.with_money) for message in messages_], safe=False)


@shared_page
def series(request: HttpRequest, link: SharedLink) -> HttpResponse:
    """Columns of some rounds of a shared job in finer points, for zooming."""
    if link.job is None:
        return gone(request)
    first, last = (queries.event_number(request.GET.get(end)) for end in ("from", "to"))
    drawn = series_of(link.job, first or 1, last or link.job.round_no)
    return JsonResponse(job_series(drawn, money=link.with_money))


@shared_page
def films(request: HttpRequest, link: SharedLink) -> HttpResponse:
    """The films of a shared job, for a page that waits for the next one."""
    if link.job is None:
        return gone(request)
    card = film_card_of(link, _secret_of(request))
    return JsonResponse({"films": card.films if card else [], "sentence": card.sentence if card else ""})


@shared_page
def film(request: HttpRequest, link: SharedLink, film_id: int, part: str) -> HttpResponseBase:
    """A film of a shared job, or its first picture."""
    film_row = Film.objects.filter(job=link.job_id, pk=film_id, state=FilmState.READY).first()
    try:
        return gone(request) if film_row is None else film_response(film_row, part)
    except Http404:
        return gone(request)


def _secret_of(request: HttpRequest) -> str:
    return request.resolver_match.kwargs["secret"] if request.resolver_match else ""
