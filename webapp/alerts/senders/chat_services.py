"""The chat services that alerts go to: the hosts of each, and the arguments that its addresses may carry.

An argument that is not named here refuses the address. Apprise has arguments that read a file or fetch an address
(`template`), repeat and wait (`retry`, `wait`), or add headers (`+name`): none of them is in this table, and one
that a later version of Apprise brings does not either.
"""

from __future__ import annotations

from dataclasses import dataclass

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
"""By the scheme of an Apprise URL."""
TEAMS_HOSTS = (".logic.azure.com", ".api.powerplatform.com")
"""The hosts of Microsoft's workflows. Each channel of Teams has one."""
SERVICE_NAMES = (
    "Slack, Discord, Microsoft Teams, Telegram, Google Chat, Webex, PagerDuty, Opsgenie, Pushover or"
    " Pushbullet"
)
