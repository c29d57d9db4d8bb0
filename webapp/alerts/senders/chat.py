"""By chat, through Apprise: Slack, Teams, Discord and others, each by the address it gives out for a channel.

Apprise looks names up by itself, so only services whose host nobody can choose are taken, and those on hosts that the
operator named.
"""

from __future__ import annotations

import logging
from typing import Any

from django.views.decorators.debug import sensitive_variables

from webapp.alerts import outward, vault
from webapp.alerts.message import Message
from webapp.alerts.models import Channel, Severity
from webapp.alerts.senders.outcome import Outcome, later, refused
from webapp.credentials.secret import Secret

logging.getLogger("apprise").setLevel(logging.CRITICAL)  # its warnings repeat what services answered

_CONNECT_S, _READ_S = 4.0, 6.0
FIXED_HOSTS = frozenset(
    {"slack", "discord", "tgram", "gchat", "wxteams", "pagerduty", "opsgenie", "pover", "pbul"}
)
"""Services that always go to hosts of their own, by https."""
TEAMS_HOSTS = (".logic.azure.com", ".api.powerplatform.com")
"""Where Microsoft's workflows live, one of which stands behind each channel of Teams."""
ON_NAMED_HOSTS = frozenset(
    {"json", "jsons", "form", "forms", "mmost", "mmosts", "rocket", "rockets", "gotify", "gotifys"}
)
"""Services that people run themselves: only on hosts of STARLING_ALERT_HOSTS."""
SERVICES = "Slack, Discord, Microsoft Teams, Telegram, Google Chat, Webex, PagerDuty, Opsgenie, Pushover or Pushbullet"


@sensitive_variables()
def notifier(url: str) -> Any:
    """Apprise's sender for this address. Raises outward.Refused."""
    import apprise  # takes a while and reads many files: only who sends by chat pays for it

    asset = apprise.AppriseAsset(http_redirects=False, app_id="Starling", app_desc="Starling", app_url="")
    made = apprise.Apprise.instantiate(url.strip(), asset=asset, suppress_exceptions=True)
    if made is None:
        raise outward.Refused(
            f"This is no address of {SERVICES}. Copy the whole webhook URL, or write an Apprise URL."
        )
    _require_allowed(made)
    made.redirects = False
    made.verify_certificate = True
    made.socket_connect_timeout, made.socket_read_timeout = _CONNECT_S, _READ_S
    return made


def service_of(made: Any) -> str:
    """Its name for people."""
    return str(made.service_name)


@sensitive_variables("url", "made")
def send(channel: Channel, message: Message) -> Outcome:
    """One attempt. Services tell no more than whether they took it."""
    import apprise

    kinds = {
        Severity.INFO: apprise.NotifyType.INFO,
        Severity.WARNING: apprise.NotifyType.WARNING,
        Severity.CRITICAL: apprise.NotifyType.FAILURE,
    }
    try:
        url: Secret = vault.opened(channel, "url")
        made = notifier(url.reveal())
        body = f"{message.sentence}\n{message.link}"
        kind = apprise.NotifyType.SUCCESS if message.over else kinds[message.severity]
        taken = made.notify(title=message.title, body=body, notify_type=kind)
    except (vault.CannotOpen, outward.Refused) as error:
        return refused(str(error))
    except Exception as error:  # whatever its plugins raise must not end the worker's turn
        return later(f"{channel.place} could not be told: {type(error).__name__}.")
    if taken:
        return Outcome(True)
    return later(f"{channel.place} did not take the message. See that its address is still valid.")


def _require_allowed(made: Any) -> None:
    schemes = _schemes(made)
    host, port = str(getattr(made, "host", "") or "").lower(), getattr(made, "port", None)
    if schemes & FIXED_HOSTS:
        return
    if "workflow" in schemes and host.endswith(TEAMS_HOSTS) and port in (None, 443):
        return
    if schemes & ON_NAMED_HOSTS and outward.is_exempt(host, port):
        return
    if schemes & (ON_NAMED_HOSTS | {"workflow"}):
        raise outward.Refused(
            f"{host} is a host of somebody's own. Chat goes there once this installation's operator names it in"
            " STARLING_ALERT_HOSTS. For your own receiver, a webhook is the better channel."
        )
    raise outward.Refused(f"Alerts do not go out by {service_of(made)}. Use {SERVICES}.")


def _schemes(made: Any) -> frozenset[str]:
    found: set[str] = set()
    for protocols in (made.protocol, made.secure_protocol):
        if protocols:
            found |= {protocols} if isinstance(protocols, str) else set(protocols)
    return frozenset(found)
