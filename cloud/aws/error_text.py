"""What AWS's refusals mean, in words, and what to do about each."""

from __future__ import annotations

from typing import Any, NamedTuple


class Refusal(NamedTuple):
    """Why something did not work and what helps. `code` is the cloud's own name for it."""

    code: str
    words: str
    fix: str


DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"})
ABSENT = frozenset({"ResourceNotFoundException", "NoSuchEntity", "NoSuchBucket", "NoSuchKey", "404"})

_KNOWN: dict[str, tuple[str, str]] = {
    "InvalidClientTokenId": (
        "AWS does not know this access key.",
        "Copy the access key ID again. If the key was deleted or switched off, make a new one.",
    ),
    "UnrecognizedClientException": (
        "AWS does not know this access key.",
        "Copy the access key ID again. If the key was deleted or switched off, make a new one.",
    ),
    "SignatureDoesNotMatch": (
        "The secret does not belong to this access key, or this server's clock is wrong.",
        "Copy the secret access key again; it is shown once, when the key is made.",
    ),
    "RequestExpired": ("This server's clock and AWS's differ too much.", "Set this server's clock."),
    "ExpiredToken": (
        "The credentials have expired.",
        "Temporary credentials cannot be stored here. Use a role, or the keys of a user.",
    ),
    "ExpiredTokenException": (
        "The credentials have expired.",
        "Temporary credentials cannot be stored here. Use a role, or the keys of a user.",
    ),
    "OptInRequired": (
        "The account is not signed up for this service, or not yet.",
        "Finish the account's sign-up in the AWS console.",
    ),
    "RegionDisabledException": (
        "This region is switched off in the account.",
        "Switch it on in the AWS console under Account, AWS Regions; or choose another one.",
    ),
    "Throttling": ("AWS asked us to slow down.", "Test again in a minute."),
    "ThrottlingException": ("AWS asked us to slow down.", "Test again in a minute."),
    "TooManyRequestsException": ("AWS asked us to slow down.", "Test again in a minute."),
    "AuthFailure": ("AWS did not take the credentials.", "Type them in again."),
    "InvalidAccessKeyId": ("AWS does not know this access key.", "Copy the access key ID again."),
}

_NO_WAY_THERE = (
    "This server could not reach AWS in this region.",
    "See that the region is spelt right, and that this server may open HTTPS connections to amazonaws.com.",
)
_BY_CLASS: dict[str, tuple[str, str]] = {
    "EndpointConnectionError": _NO_WAY_THERE,
    "ConnectTimeoutError": _NO_WAY_THERE,
    "ConnectionClosedError": _NO_WAY_THERE,
    "ReadTimeoutError": ("AWS took too long to answer.", "Test again in a minute."),
    "ProxyConnectionError": (
        "The proxy of this server let nothing through.",
        "See this server's proxy settings.",
    ),
    "SSLError": (
        "The connection was not one we can trust: the other side's certificate is not AWS's.",
        "See whether a proxy stands between this server and AWS.",
    ),
    "NoCredentialsError": (
        "This installation has no AWS identity of its own, so it cannot take on a role.",
        "Whoever runs it gives it one (an instance role, or keys in its environment). Or use access keys here.",
    ),
    "PartialCredentialsError": (
        "This installation's own AWS identity is not complete.",
        "Whoever runs it looks at its AWS variables.",
    ),
    "CredentialRetrievalError": (
        "This installation could not get at its own AWS identity.",
        "Whoever runs it looks at its AWS settings.",
    ),
    "ParamValidationError": (
        "Something that was typed in is not what AWS takes.",
        "Look at each field again, then test again.",
    ),
    "InvalidRegionError": ("There is no such region.", "Choose another region."),
    "UnknownServiceError": ("This region does not have the service.", "Choose another region."),
}


def code_of(error: Exception) -> str:
    """The cloud's name for an error, or the name of its class where the cloud never answered."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        return str(response.get("Error", {}).get("Code", "")) or type(error).__name__
    return type(error).__name__


def refusal(error: Exception) -> Refusal:
    """Any error of the SDK in words. Never the SDK's own text, which may repeat what was sent."""
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
