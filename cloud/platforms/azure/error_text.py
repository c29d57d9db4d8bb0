"""Azure's errors as text: what each means, and what to do about it."""

from __future__ import annotations

import re
from typing import Any

from cloud.platforms.aws.error_text import Refusal

_SIGN_IN_CODE = re.compile(r"AADSTS\d+")
_NAMED_ACTION = re.compile(r"perform action '(Microsoft\.[\w./]+)'")

_SIGN_IN: dict[str, tuple[str, str]] = {
    "AADSTS7000215": (
        "The client secret is wrong.",
        "Copy the secret's Value, not its Secret ID; Azure shows it once, when it is made.",
    ),
    "AADSTS7000222": (
        "The client secret has expired.",
        "Make a new one under Certificates & secrets of the app registration, and type it in here.",
    ),
    "AADSTS700016": (
        "This tenant has no app with this client ID.",
        "Copy Application (client) ID from the app registration's overview, and check the tenant.",
    ),
    "AADSTS90002": (
        "There is no such tenant.",
        "Copy Directory (tenant) ID from the app registration's overview.",
    ),
    "AADSTS900023": (
        "This is not a tenant ID.",
        "Copy Directory (tenant) ID from the app registration's overview.",
    ),
    "AADSTS7000112": (
        "The app is switched off.",
        "Switch sign-in on under Enterprise applications, Properties.",
    ),
    "AADSTS53003": (
        "A conditional access policy blocks the app.",
        "Ask the tenant's administrator to allow this app from this server.",
    ),
    "AADSTS700024": ("This server's clock and Azure's differ too much.", "Set this server's clock."),
}

_SWITCHED_OFF = ("The subscription is switched off.", "See its state in the Azure portal.")
_NOT_IN_THIS_REGION = ("Container instances are not offered in this region.", "Choose another region.")
_THROTTLED = ("Azure is throttling requests.", "Test again in a minute.")
_KNOWN: dict[str, tuple[str, str]] = {
    "SubscriptionNotFound": (
        "There is no such subscription, or the app has no role anywhere in it.",
        "Copy the subscription's ID again, and give the app the two roles shown here.",
    ),
    "InvalidSubscriptionId": ("This is not a subscription ID.", "Copy the subscription's ID again."),
    "DisabledSubscription": _SWITCHED_OFF,
    "ReadOnlyDisabledSubscription": _SWITCHED_OFF,
    "ResourceGroupNotFound": (
        "There is no such resource group.",
        "Make it in the Azure portal, in the region of this connection.",
    ),
    "MissingSubscriptionRegistration": (
        "The subscription does not use container instances yet.",
        "Run `az provider register --namespace Microsoft.ContainerInstance` (free), wait a minute, and test again.",
    ),
    "NoRegisteredProviderFound": _NOT_IN_THIS_REGION,
    "LocationNotAvailableForResourceType": _NOT_IN_THIS_REGION,
    "InvalidAuthenticationTokenTenant": (
        "The subscription belongs to another tenant.",
        "Use tenant, app and subscription of the same directory.",
    ),
    "InaccessibleImage": (
        "Azure cannot fetch the image.",
        "Check its name, that it is public, and that it was pushed.",
    ),
    "ContainerGroupQuotaReached": (
        "The subscription may not have more container groups or cores in this region.",
        "Use fewer actors, delete unused groups, or ask Azure for more with a support request; it is free.",
    ),
    "ServiceUnavailable": (
        "The region has no room for this now.",
        "Wait, use smaller containers, or choose another region.",
    ),
    "RegistryErrorResponse": (
        "The registry of the image answers Azure with an error, or limits its requests.",
        "Wait some minutes. If it lasts, see the registry's state, or keep the image in another registry.",
    ),
    "ContainerGroupTransitioning": ("The group is being changed.", "Wait a moment."),
    "ExpiredAuthenticationToken": ("The sign-in has expired.", "Nothing to do: it is renewed by itself."),
    "TooManyRequests": _THROTTLED,
    "SubscriptionRequestsThrottled": _THROTTLED,
}
DENIED = frozenset({"AuthorizationFailed", "LinkedAuthorizationFailed"})

_BY_CLASS: dict[str, tuple[str, str]] = {
    "ServiceRequestError": (
        "This server could not reach Azure.",
        "Check that it may open HTTPS connections to login.microsoftonline.com and management.azure.com.",
    ),
    "ServiceRequestTimeoutError": ("Azure took too long to answer.", "Test again in a minute."),
    "ServiceResponseError": ("Azure broke the connection off.", "Test again in a minute."),
    "ServiceResponseTimeoutError": ("Azure took too long to answer.", "Test again in a minute."),
}


def code_of(error: Exception) -> str:
    """Return Azure's name for an error: its sign-in's, its API's, or the name of the error's class."""
    # Only the code is taken out of the sign-in's text, which repeats what was sent.
    if match := _SIGN_IN_CODE.search(str(getattr(error, "message", error))):
        return match.group()
    detail: Any = getattr(error, "error", None)
    code = getattr(detail, "code", None) or _code_in_body(error)
    return str(code) if code else type(error).__name__


def _code_in_body(error: Exception) -> str:
    """Return the code in the body of an answer that the SDK has not parsed."""
    try:
        body: Any = error.response.json()  # type: ignore[attr-defined]
    except Exception:  # no answer, or none that is JSON
        return ""
    return str(body["error"]["code"]) if isinstance(body, dict) and "code" in body.get("error", {}) else ""


def refusal(error: Exception) -> Refusal:
    """Return any error of the SDK as text: never the SDK's own, which may repeat what was sent."""
    code = code_of(error)
    if code in DENIED:
        # Of two actions the last is the one that is missing: the first belongs to the linked resource.
        named = _NAMED_ACTION.findall(str(getattr(error, "message", error)))
        if not named:
            return Refusal(code, "Azure refuses this to the app.", "Give the app the roles shown here.")
        fix = f"Add {named[-1]} to the app's role, or copy the two roles again, and give both to the app."
        return Refusal(code, f"Azure refuses {named[-1]} to the app.", fix)
    known = _SIGN_IN.get(code) or _KNOWN.get(code) or _by_class(error)
    if known is None:
        words, fix = (
            f"Azure answered with {code}.",
            "Look that name up in Azure's documentation, or test again in a minute.",
        )
        return Refusal(code, words, fix)
    return Refusal(code, *known)


def _by_class(error: Exception) -> tuple[str, str] | None:
    # azure-identity wraps the error that kept it from sending a request.
    for cause in (error, error.__cause__, getattr(error, "inner_exception", None)):
        if cause is not None and type(cause).__name__ in _BY_CLASS:
            return _BY_CLASS[type(cause).__name__]
    return None
