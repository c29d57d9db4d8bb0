"""By webhook: a JSON document, signed, posted to an address of the project's choice.

`Starling-Signature: t=<unix seconds>,v1=<hex>` is HMAC-SHA256 under the channel's key over `<t>.<body>`, so that a
receiver can tell that it is ours and fresh. docs/alerts.md shows how to check it.
"""

from __future__ import annotations

import hashlib
import hmac

from django.views.decorators.debug import sensitive_variables

from webapp.alerts import secrets
from webapp.alerts.message import AlertMessage, SendingOutcome, later, refused
from webapp.alerts.models import Channel
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.sealing import CannotOpen, Secret
from webapp.http import safe_http

_LATER = frozenset({408, 409, 425, 429})


@sensitive_variables("url", "key")
def send(channel: Channel, message: AlertMessage, clock: Clock = SYSTEM_CLOCK) -> SendingOutcome:
    """One attempt. Whatever the receiver answers but 2xx is a failure; redirects are not followed."""
    try:
        url, key = secrets.open_secret(channel, "url"), secrets.open_secret(channel, "signing_key")
        answer = safe_http.post(
            url.reveal(), message.body, headers(message, key, int(clock.now().timestamp()))
        )
    except (CannotOpen, safe_http.AddressRefused) as error:
        return refused(str(error))
    except safe_http.HostUnreachable as error:
        return later(str(error))
    return _outcome_of(answer)


@sensitive_variables("key")
def headers(message: AlertMessage, key: Secret, now_unix_s: int) -> dict[str, str]:
    """What goes with the body."""
    return {
        "Content-Type": "application/json",
        "User-Agent": "Starling-Webhook/1",
        "Starling-Delivery": message.delivery_id,
        "Starling-Event": message.document.type,
        "Starling-Signature": f"t={now_unix_s},v1={signature(message.body, key, now_unix_s)}",
    }


@sensitive_variables("key")
def signature(body: bytes, key: Secret, now_unix_s: int) -> str:
    """HMAC-SHA256 over timestamp and body, in hexadecimal."""
    return hmac.new(key.reveal().encode(), b"%d.%b" % (now_unix_s, body), hashlib.sha256).hexdigest()


def _outcome_of(answer: safe_http.HttpAnswer) -> SendingOutcome:
    status = answer.status
    if 200 <= status < 300:
        return SendingOutcome(True, status=status)
    if 300 <= status < 400:
        words = (
            f"It answered {status}, a redirect, which is not followed. Enter the address that it leads to."
        )
        return refused(words, status)
    if status in _LATER or status >= 500:
        return later(f"It answered {status}.", status, answer.retry_after_s)
    return refused(f"It answered {status}, and would again. See what its address and its rules are.", status)
