"""Pages of channels: the list, a new channel, a channel with its settings and log, and the page of mail consent."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_safe

from webapp.accounts.access import live_page, person_of, project_action, project_page
from webapp.accounts.fresh_sign_in import fresh_sign_in, fresh_sign_in_for_secrets
from webapp.accounts.models import Project
from webapp.alerts import channels, mail_consent, queries, services
from webapp.alerts.forms import KINDS, NEW_FORMS, ChannelForm
from webapp.alerts.models import Channel, ChannelKind, DeliveryState
from webapp.alerts.senders import mail
from webapp.alerts.text import DELIVERY_SHOWN, WAY_ICONS, WAYS, channel_status, mail_readers, readers
from webapp.connections.sealing import Secret
from webapp.http.form_versions import FormVersion, refuse_if_stale, version_of

_LOG_A_PAGE = 25


@project_page()
@require_safe
def channel_list(request: HttpRequest, project: Project) -> HttpResponse:
    """All channels. Viewers see names and states."""
    services.built_in_channel(project.pk)
    cards = [
        {
            "channel": channel,
            "status": channel_status(channel),
            "icon": WAY_ICONS[ChannelKind(channel.way)],
            "to": _readers(channel),
        }
        for channel in queries.channels_of(project)
    ]
    return render(request, "alerts/channels.html", {"cards": cards, "ways": WAYS})


@sensitive_post_parameters()
@project_page(needs="owner")
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@fresh_sign_in_for_secrets
@sensitive_variables("form", "key")
def channel_new(request: HttpRequest, project: Project, way: str) -> HttpResponse:
    """A new channel. Only this response shows a webhook's signing key."""
    if way not in NEW_FORMS:
        raise Http404("There is no such kind of channel.")
    form = NEW_FORMS[way](request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made, key = channels.add(project=project, way=way, **form.cleaned_data)
        except channels.ChannelRefused as refusal:
            form.add_error(None, str(refusal))
        else:
            return (
                _detail(request, made, key=key) if key else redirect("alerts:channel", project.slug, made.pk)
            )
    offered = next(kind for kind in WAYS if kind.way == way)
    context = {"form": form, "way": offered, "no_server": "" if mail.can_send() else mail.NO_SERVER}
    status = 422 if request.method == "POST" else 200
    return render(request, "alerts/channel_new.html", context, status=status)


@live_page("editor")
def channel_detail(request: HttpRequest, project: Project, channel_id: str) -> HttpResponse:
    """One channel. With ?log=1 only its log, for the page that waits for a message."""
    channel = queries.channel_in(project, channel_id)
    if request.GET.get("log"):
        return render(request, "alerts/log.html", _log(request, channel))
    return _detail(request, channel)


@project_action("owner")
@fresh_sign_in
def channel_change(request: HttpRequest, project: Project, channel_id: str) -> HttpResponse:
    channel = queries.channel_in(project, channel_id)
    form = ChannelForm(request.POST, channel=channel)
    refuse_if_stale(form, _version(channel))
    if form.is_valid():
        given = form.cleaned_data
        try:
            channels.change(
                channel=channel,
                name=given.get("name", channel.name),
                on=given["on"],
                kinds=given["kinds"],
                addresses=given.get("addresses"),
            )
            messages.success(request, "The channel is changed.")
            return redirect("alerts:channel", project.slug, channel.pk)
        except channels.ChannelRefused as refusal:
            form.add_error("name", str(refusal))
    return _detail(request, channel, form, status=422)


@project_action("owner")
def channel_test(request: HttpRequest, project: Project, channel_id: str) -> HttpResponse:
    """Send a test message and redirect to the channel's log."""
    channel = queries.channel_in(project, channel_id)
    channels.send_test(channel=channel, user=person_of(request))
    return redirect("alerts:channel", project.slug, channel.pk)


@project_action("owner")
@never_cache
@fresh_sign_in
def channel_key(request: HttpRequest, project: Project, channel_id: str) -> HttpResponse:
    """Replace the signing key. Only this response shows the new one."""
    channel = queries.channel_in(project, channel_id)
    try:
        return _detail(request, channel, key=channels.renew_key(channel=channel))
    except channels.ChannelRefused as refusal:
        raise Http404(str(refusal)) from None


@project_action("owner")
def channel_remove(request: HttpRequest, project: Project, channel_id: str) -> HttpResponse:
    channel = queries.channel_in(project, channel_id)
    _version(channel).refuse_if_stale(request.POST)
    channels.remove(channel=channel)
    messages.success(request, f"{channel.name} and its log are deleted.")
    return redirect("alerts:channels", project.slug)


@project_action("owner")
def replay(request: HttpRequest, project: Project, delivery_id: str) -> HttpResponse:
    delivery = queries.delivery_in(project, delivery_id)
    try:
        channels.replay(delivery=delivery)
    except channels.ChannelRefused as refusal:
        messages.error(request, str(refusal))
    return redirect("alerts:channel", project.slug, delivery.channel_id)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def consent(request: HttpRequest, token: str) -> HttpResponse:
    """The page that accepts or declines a project's mails. The link in the mail authorises it.

    A GET changes nothing: programs that check mails open every link.
    """
    given = mail_consent.by_token(token)
    if given is None:
        raise Http404("This link is not complete. Copy the whole line from the mail.")
    if request.method == "POST" and (said := request.POST.get("answer")) in ("yes", "no"):
        mail_consent.answer(given, agrees=said == "yes")
        return redirect("alerts:mail_consent", token)
    return render(request, "alerts/consent.html", {"consent": given})


@sensitive_variables("key")
def _version(channel: Channel) -> FormVersion:
    return version_of(ChannelForm(channel=channel), f"channel {channel.pk}")


def _detail(
    request: HttpRequest,
    channel: Channel,
    form: ChannelForm | None = None,
    key: Secret | None = None,
    status: int = 200,
) -> HttpResponse:
    if form is None:
        form = ChannelForm(channel=channel)
        refuse_if_stale(form, _version(channel))
    context = {
        "form": form,
        "kinds": [(value, label, value in form.chosen()) for value, label in KINDS],
        "icon": WAY_ICONS[ChannelKind(channel.way)],
        "to": _readers(channel),
        "mail_readers": mail_readers(channel) if channel.way == ChannelKind.EMAIL else [],
        "key": key.reveal() if key else "",
        **_log(request, channel),
    }
    return render(request, "alerts/channel.html", context, status=status)


def _log(request: HttpRequest, channel: Channel) -> dict[str, Any]:
    page = Paginator(queries.deliveries_of(channel), _LOG_A_PAGE).get_page(request.GET.get("page"))
    rows = [
        {"delivery": one, "tone": DELIVERY_SHOWN[one.state][0], "icon": DELIVERY_SHOWN[one.state][1]}
        for one in page
    ]
    return {
        "channel": channel,
        "status": channel_status(channel),
        "page": page,
        "rows": rows,
        "waiting": any(delivery.state in (DeliveryState.WAITING, DeliveryState.SENDING) for delivery in page),
    }


def _readers(channel: Channel) -> str:
    return ", ".join(readers(channel)) or "no one"
