"""Sends to Slack, Teams, Discord and others through Apprise, by the address that each service issues for a channel.

Apprise does much more than send. So an address may only have arguments that `SERVICES` names, a service's host
must be fixed or named by the operator, and a guard limits what Apprise opens.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from django.views.decorators.debug import sensitive_variables

from webapp.alerts import connection_guard, secrets
from webapp.alerts.message import AlertMessage, SendingOutcome, later, refused
from webapp.alerts.models import Channel, Severity
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.sealing import CannotOpen, Secret
from webapp.http import safe_http

OF_ALL = frozenset({"verify", "redirect", "rto", "cto", "format", "overflow"})
"""Arguments of every service. The first four change nothing: `chat.notifier` sets what they set."""


@dataclass(frozen=True)
class ChatService:
    """Where a service listens, and what its addresses may say. Without hosts it is the host in the address."""

    arguments: frozenset[str]
    hosts: frozenset[str] = frozenset()


def _service(arguments: str, hosts: str = "") -> ChatService:
    return ChatService(frozenset(arguments.split()) | OF_ALL, frozenset(hosts.split()))


_JSON = _service("")
_FORM = _service("")
_MATTERMOST = _service("channel channels botname image icon_url team mode to")
_ROCKET_CHAT = _service("mode avatar webhook to")
_GOTIFY = _service("priority")
_TEAMS = _service("id image pa powerautomate route routeid wrap sig ver api-version sp sv")
_WEBEX = _service("token mode to", "webexapis.com api.ciscospark.com")

SERVICES: dict[str, ChatService] = {
    "slack": _service(
        "image footer blocks timestamp mode token to", "hooks.slack.com slack.com hooks.slack-gov.com"
    ),
    "discord": _service(
        "tts avatar avatar_url href url thread footer footer_logo fields flags image ping batch",
        "discord.com",
    ),
    "tgram": _service("detect silent preview topic thread mdv to", "api.telegram.org"),
    "gchat": _service("workspace key token thread threadkey", "chat.googleapis.com"),
    "wxteams": _WEBEX,
    "webex": _WEBEX,
    "pagerduty": _service(
        "group class click region severity image action dedup", "events.pagerduty.com events.eu.pagerduty.com"
    ),
    "opsgenie": _service(
        "region priority entity alias tags action to batch", "api.opsgenie.com api.eu.opsgenie.com"
    ),
    "pover": _service("priority sound url url_title interval expire to key", "api.pushover.net"),
    "pbul": _service("to", "api.pushbullet.com"),
    "workflow": _TEAMS,
    "workflows": _TEAMS,
    "json": _JSON,
    "jsons": _JSON,
    "form": _FORM,
    "forms": _FORM,
    "mmost": _MATTERMOST,
    "mmosts": _MATTERMOST,
    "rocket": _ROCKET_CHAT,
    "rockets": _ROCKET_CHAT,
    "gotify": _GOTIFY,
    "gotifys": _GOTIFY,
}
"""By the scheme of an Apprise URL. An argument that is not named here refuses the address: Apprise has arguments that
read a file or fetch an address (`template`), repeat and wait (`retry`, `wait`), or add headers (`+name`)."""
TEAMS_HOSTS = (".logic.azure.com", ".api.powerplatform.com")
"""The hosts of Microsoft's workflows. Each channel of Teams has one."""
SERVICE_NAMES = (
    "Slack, Discord, Microsoft Teams, Telegram, Google Chat, Webex, PagerDuty, Opsgenie, Pushover or"
    " Pushbullet"
)


logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its warnings repeat what services answered

_CONNECT_S, _READ_S = 4.0, 6.0


@sensitive_variables()
def notifier(url: str) -> Any:
    """Apprise's sender for this address. Raises safe_http.AddressRefused."""
    import apprise  # slow, and reads many files: imported only to send by chat
    from apprise.plugins import url_to_dict

    # Apprise's parse is checked, not the address, so that no address can be parsed in another way.
    parsed = url_to_dict(url.strip())  # type: ignore[no-untyped-call]  # Apprise has no types
    if not parsed:
        raise safe_http.AddressRefused(
            f"This is no address of {SERVICE_NAMES}. Copy the whole webhook URL, or write an Apprise URL."
        )
    _require_service(parsed)
    asset = apprise.AppriseAsset(http_redirects=False, app_id="Starling", app_desc="Starling", app_url="")
    with connection_guard.limit_to(connection_guard.Guard()):
        made = apprise.Apprise.instantiate(parsed, asset=asset, suppress_exceptions=True)
    if made is None:
        raise safe_http.AddressRefused(
            "The service does not know this address. Copy the whole webhook URL again."
        )
    made.redirects = False
    made.verify_certificate = True
    made.socket_connect_timeout, made.socket_read_timeout = _CONNECT_S, _READ_S
    return made


def service_of(made: Any) -> str:
    return str(made.service_name)


@sensitive_variables("url", "made")
def send(channel: Channel, message: AlertMessage, clock: Clock = SYSTEM_CLOCK) -> SendingOutcome:
    """One attempt. Services report only whether they accepted it."""
    import apprise

    kinds = {
        Severity.INFO: apprise.NotifyType.INFO,
        Severity.WARNING: apprise.NotifyType.WARNING,
        Severity.CRITICAL: apprise.NotifyType.FAILURE,
    }
    try:
        url: Secret = secrets.open_secret(channel, "url")
        made = notifier(url.reveal())
        body = f"{message.sentence}\n{message.link}"
        kind = apprise.NotifyType.SUCCESS if message.over else kinds[message.severity]
        with connection_guard.limit_to(guard_for(made)) as guard:
            taken = made.notify(title=message.title, body=body, notify_type=kind)
    except (CannotOpen, safe_http.AddressRefused) as error:
        return refused(str(error))
    except Exception as error:  # whatever its plugins raise must not end the worker's turn
        return later(f"{channel.place} could not be reached: {type(error).__name__}.")
    if taken:
        return SendingOutcome(True)
    if guard.refusals:
        return later(f"{channel.place} got no message. {guard.refusals[0]}")
    return later(f"{channel.place} did not take the message. See that its address is still valid.")


def guard_for(made: Any) -> connection_guard.Guard:
    """Connections to the service's own hosts, of which those that the operator named may be private."""
    protocols = [made.protocol or (), made.secure_protocol or ()]
    schema = next(one if isinstance(one, str) else one[0] for one in protocols if one)
    if hosts := SERVICES[schema].hosts:
        return connection_guard.Guard(hosts)
    host, port = str(made.host).lower(), made.port or (443 if made.secure else 80)
    return connection_guard.Guard(frozenset({host}), port, safe_http.is_exempt(host, port))


def _require_service(parsed: dict[str, Any]) -> None:
    schema = str(parsed["schema"]).lower()
    service = SERVICES.get(schema)
    if service is None:
        raise safe_http.AddressRefused(f"Alerts cannot be sent by {schema}. Use {SERVICE_NAMES}.")
    if not service.hosts:
        _require_host(schema, str(parsed.get("host") or "").lower(), parsed.get("port"))
    if set(parsed.get("qsd", ())) - service.arguments:
        taken = ", ".join(sorted(service.arguments))
        raise safe_http.AddressRefused(
            f"The address carries more than the service's own arguments, of which these are taken: {taken}."
            " Copy it again as the service gave it out."
        )


def _require_host(schema: str, host: str, port: int | None) -> None:
    if safe_http.is_exempt(host, port) and not schema.startswith("workflow"):
        return
    if schema.startswith("workflow") and host.endswith(TEAMS_HOSTS) and port in (None, 443):
        return
    raise safe_http.AddressRefused(
        f"{host} is a self-hosted server. Chat goes there once this installation's operator names it in"
        " STARLING_ALERT_HOSTS. For your own receiver, a webhook is the better channel."
    )
