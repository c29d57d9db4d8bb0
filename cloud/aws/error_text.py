"""AWS's errors as text: what each means, and what to do about it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Refusal(NamedTuple):
    """Why something did not work, and what helps. `code` is the cloud's name for it."""

    code: str
    words: str
    fix: str


DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"})
ABSENT = frozenset({"ResourceNotFoundException", "NoSuchEntity", "NoSuchBucket", "NoSuchKey", "404"})

_UNKNOWN_KEY = (
    "AWS does not know this access key.",
    "Copy the access key ID again. If the key was deleted or switched off, make a new one.",
)
_EXPIRED = (
    "The credentials have expired.",
    "Temporary credentials cannot be stored here. Use a role, or the keys of a user.",
)
_THROTTLED = ("AWS is throttling requests.", "Test again in a minute.")
_KNOWN: dict[str, tuple[str, str]] = {
    "InvalidClientTokenId": _UNKNOWN_KEY,
    "UnrecognizedClientException": _UNKNOWN_KEY,
    "InvalidAccessKeyId": _UNKNOWN_KEY,
    "SignatureDoesNotMatch": (
        "The secret does not belong to this access key, or this server's clock is wrong.",
        "Copy the secret access key again; it is shown once, when the key is made.",
    ),
    "RequestExpired": ("This server's clock and AWS's differ too much.", "Set this server's clock."),
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "OptInRequired": (
        "The account is not signed up for this service, or not yet.",
        "Finish the account's sign-up in the AWS console.",
    ),
    "RegionDisabledException": (
        "This region is switched off in the account.",
        "Switch it on in the AWS console under Account, AWS Regions; or choose another one.",
    ),
    "Throttling": _THROTTLED,
    "ThrottlingException": _THROTTLED,
    "TooManyRequestsException": _THROTTLED,
    "AuthFailure": ("AWS did not accept the credentials.", "Type them in again."),
}

_UNREACHABLE = (
    "This server could not reach AWS in this region.",
    "Check the region's spelling, and that this server may open HTTPS connections to amazonaws.com.",
)
_BY_CLASS: dict[str, tuple[str, str]] = {
    "EndpointConnectionError": _UNREACHABLE,
    "ConnectTimeoutError": _UNREACHABLE,
    "ConnectionClosedError": _UNREACHABLE,
    "ReadTimeoutError": ("AWS took too long to answer.", "Test again in a minute."),
    "ProxyConnectionError": (
        "This server's proxy refused the connection.",
        "Check this server's proxy settings.",
    ),
    "SSLError": (
        "The connection cannot be trusted: the certificate at the other end is not AWS's.",
        "Check whether there is a proxy between this server and AWS.",
    ),
    "NoCredentialsError": (
        "This installation has no AWS identity of its own, so it cannot assume a role.",
        "Ask its operator for one (an instance role, or keys of its own). Or use access keys here.",
    ),
    "PartialCredentialsError": (
        "This installation's own AWS identity is not complete.",
        "Ask its operator to check its AWS variables.",
    ),
    "CredentialRetrievalError": (
        "This installation could not read its own AWS identity.",
        "Ask its operator to check its AWS settings.",
    ),
    "ParamValidationError": (
        "AWS does not accept the format of a value that was typed in.",
        "Check each field, then test again.",
    ),
    "InvalidRegionError": ("There is no such region.", "Choose another region."),
    "UnknownServiceError": ("This region does not have the service.", "Choose another region."),
}


def code_of(error: Exception) -> str:
    """Return AWS's name for an error, or the name of its class if AWS did not answer."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        return str(response.get("Error", {}).get("Code", "")) or type(error).__name__
    return type(error).__name__


def refusal(error: Exception) -> Refusal:
    """Return any error of the SDK as text: never the SDK's own, which may repeat what was sent."""
    code = code_of(error)
    if code in DENIED:
        return Refusal(code, "AWS refuses this to these credentials.", "Add it to their policy.")
    known = _KNOWN.get(code) or _BY_CLASS.get(code)
    if known is None:
        words, fix = (
            f"AWS answered with {code}.",
            "Look that name up in AWS's documentation, or test again in a minute.",
        )
        return Refusal(code, words, fix)
    return Refusal(code, *known)
