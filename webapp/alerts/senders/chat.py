"""Sends to Slack, Teams, Discord and others through Apprise, by the address that each service issues for a channel.

Apprise does much more than send. So an address may only have arguments that `chat_services` names, a service's host
must be fixed or named by the operator, and a guard limits what Apprise opens.
"""

from __future__ import annotations

import logging
from typing import Any

from django.views.decorators.debug import sensitive_variables

from webapp.alerts import connection_guard, safe_http, secrets
from webapp.alerts.message import Message
from webapp.alerts.models import Channel, Severity
from webapp.alerts.senders.chat_services import SERVICE_NAMES, SERVICES, TEAMS_HOSTS
from webapp.alerts.senders.outcome import Outcome, later, refused
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.secret import Secret

logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its warnings repeat what services answered

_CONNECT_S, _READ_S = 4.0, 6.0


@sensitive_variables()
def notifier(url: str) -> Any:
    """Apprise's sender for this address. Raises safe_http.Refused."""
    import apprise  # slow, and reads many files: imported only to send by chat
    from apprise.plugins import url_to_dict

    # Apprise's parse is checked, not the address, so that no address can be parsed in another way.
    parsed = url_to_dict(url.strip())  # type: ignore[no-untyped-call]  # Apprise has no types
    if not parsed:
        raise safe_http.Refused(
            f"This is no address of {SERVICE_NAMES}. Copy the whole webhook URL, or write an Apprise URL."
        )
    _require_service(parsed)
    asset = apprise.AppriseAsset(http_redirects=False, app_id="Starling", app_desc="Starling", app_url="")
    with connection_guard.limit_to(connection_guard.Guard()):
        made = apprise.Apprise.instantiate(parsed, asset=asset, suppress_exceptions=True)
    if made is None:
        raise safe_http.Refused("The service does not know this address. Copy the whole webhook URL again.")
    made.redirects = False
    made.verify_certificate = True
    made.socket_connect_timeout, made.socket_read_timeout = _CONNECT_S, _READ_S
    return made


def service_of(made: Any) -> str:
    """The service's name for people."""
    return str(made.service_name)


@sensitive_variables("url", "made")
def send(channel: Channel, message: Message, clock: Clock = SYSTEM_CLOCK) -> Outcome:
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
    except (secrets.CannotOpen, safe_http.Refused) as error:
        return refused(str(error))
    except Exception as error:  # whatever its plugins raise must not end the worker's turn
        return later(f"{channel.place} could not be reached: {type(error).__name__}.")
    if taken:
        return Outcome(True)
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
        raise safe_http.Refused(f"Alerts cannot be sent by {schema}. Use {SERVICE_NAMES}.")
    if not service.hosts:
        _require_host(schema, str(parsed.get("host") or "").lower(), parsed.get("port"))
    if set(parsed.get("qsd", ())) - service.arguments:
        taken = ", ".join(sorted(service.arguments))
        raise safe_http.Refused(
            f"The address carries more than the service's own arguments, of which these are taken: {taken}."
            " Copy it again as the service gave it out."
        )


def _require_host(schema: str, host: str, port: int | None) -> None:
    if safe_http.is_exempt(host, port) and not schema.startswith("workflow"):
        return
    if schema.startswith("workflow") and host.endswith(TEAMS_HOSTS) and port in (None, 443):
        return
    raise safe_http.Refused(
        f"{host} is a self-hosted server. Chat goes there once this installation's operator names it in"
        " STARLING_ALERT_HOSTS. For your own receiver, a webhook is the better channel."
    )
