"""What Azure's refusals mean, in words, and what to do about each."""

from __future__ import annotations

import re
from typing import Any

from cloud.aws.error_text import Refusal

_SIGN_IN_CODE = re.compile(r"AADSTS\d+")

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
        "Copy Application (client) ID from the app registration's overview, and see that the tenant is the right one.",
    ),
    "AADSTS90002": (
        "There is no such tenant.",
        "Copy Directory (tenant) ID from the app registration's overview.",
    ),
    "AADSTS900023": (
        "The tenant ID is not one.",
        "Copy Directory (tenant) ID from the app registration's overview.",
    ),
    "AADSTS7000112": (
        "The app is switched off.",
        "Switch sign-in on under Enterprise applications, Properties.",
    ),
    "AADSTS53003": (
        "A conditional access policy keeps the app out.",
        "Ask whoever runs the tenant to let this app in from this server.",
    ),
    "AADSTS700024": ("This server's clock and Azure's differ too much.", "Set this server's clock."),
}

_KNOWN: dict[str, tuple[str, str]] = {
    "SubscriptionNotFound": (
        "There is no such subscription, or the app has no role anywhere in it.",
        "Copy the subscription's ID again, and give the app the two roles shown here.",
    ),
    "InvalidSubscriptionId": ("The subscription ID is not one.", "Copy the subscription's ID again."),
    "DisabledSubscription": ("The subscription is switched off.", "See its state in the Azure portal."),
    "ReadOnlyDisabledSubscription": (
        "The subscription is switched off.",
        "See its state in the Azure portal.",
    ),
    "ResourceGroupNotFound": (
        "There is no such resource group.",
        "Make it in the Azure portal, in the region of this connection.",
    ),
    "MissingSubscriptionRegistration": (
        "The subscription does not use container instances yet.",
        "Run `az provider register --namespace Microsoft.ContainerInstance` (free), wait a minute, and test again.",
    ),
    "NoRegisteredProviderFound": (
        "Container instances are not offered in this region.",
        "Choose another region.",
    ),
    "LocationNotAvailableForResourceType": (
        "Container instances are not offered in this region.",
        "Choose another region.",
    ),
    "InvalidAuthenticationTokenTenant": (
        "The subscription belongs to another tenant.",
        "Take tenant, app and subscription from the same directory.",
    ),
    "InaccessibleImage": (
        "Azure cannot fetch the image.",
        "See that its name is right, that it is public, and that it was pushed.",
    ),
    "ContainerGroupQuotaReached": (
        "The subscription may not have more container groups or cores in this region.",
        "Ask for fewer actors, take away what stands, or ask Azure for more with a support request; it is free.",
    ),
    "ServiceUnavailable": (
        "The region has no room for this now.",
        "Wait, ask for smaller containers, or take another region.",
    ),
    "ContainerGroupTransitioning": ("The group is just being changed.", "Wait a moment."),
    "ExpiredAuthenticationToken": ("The sign-in has run out.", "Nothing to do: it is renewed by itself."),
    "TooManyRequests": ("Azure asked us to slow down.", "Test again in a minute."),
    "SubscriptionRequestsThrottled": ("Azure asked us to slow down.", "Test again in a minute."),
}
DENIED = frozenset({"AuthorizationFailed", "LinkedAuthorizationFailed"})

_BY_CLASS: dict[str, tuple[str, str]] = {
    "ServiceRequestError": (
        "This server could not reach Azure.",
        "See that it may open HTTPS connections to login.microsoftonline.com and management.azure.com.",
    ),
    "ServiceRequestTimeoutError": ("Azure took too long to answer.", "Test again in a minute."),
    "ServiceResponseError": ("Azure broke the connection off.", "Test again in a minute."),
    "ServiceResponseTimeoutError": ("Azure took too long to answer.", "Test again in a minute."),
}


def code_of(error: Exception) -> str:
    """Azure's name for an error: that of its sign-in, that of its API, or the name of the error's class."""
    # Only the code is taken out of the sign-in's text, which repeats what was sent.
    if found := _SIGN_IN_CODE.search(str(getattr(error, "message", error))):
        return found.group()
    detail: Any = getattr(error, "error", None)
    code = getattr(detail, "code", None) or _code_in_body(error)
    return str(code) if code else type(error).__name__


def _code_in_body(error: Exception) -> str:
    """The code of an answer that no client has looked into."""
    try:
        body: Any = error.response.json()  # type: ignore[attr-defined]
    except Exception:  # no answer, or none that is JSON
        return ""
    return str(body["error"]["code"]) if isinstance(body, dict) and "code" in body.get("error", {}) else ""


def refusal(error: Exception) -> Refusal:
    """Any error of the SDK in words. Never the SDK's own text, which may repeat what was sent."""
    code = code_of(error)
    if code in DENIED:
        return Refusal(code, "Azure refuses this to the app.", "Give the app the roles shown here.")
    known = _SIGN_IN.get(code) or _KNOWN.get(code) or _by_class(error)
    if known is None:
        words, fix = (
            f"Azure answered with {code}.",
            "Look that name up in Azure's documentation, or test again in a minute.",
        )
        return Refusal(code, words, fix)
    return Refusal(code, *known)


def _by_class(error: Exception) -> tuple[str, str] | None:
    # azure-identity wraps what stopped it from asking at all.
    for one in (error, error.__cause__, getattr(error, "inner_exception", None)):
        if one is not None and type(one).__name__ in _BY_CLASS:
            return _BY_CLASS[type(one).__name__]
    return None
