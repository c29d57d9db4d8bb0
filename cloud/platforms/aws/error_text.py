"""AWS's errors as text: what each means, and what to do about it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from cloud.accounts.provision.permissions import AWS, OPERATIONS_NAMED_OTHERWISE


class Refusal(NamedTuple):
    """Why something did not work, and what helps. `code` is the cloud's name for it."""

    code: str
    words: str
    fix: str


_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"})
ABSENT = frozenset({"ResourceNotFoundException", "NoSuchEntity", "NoSuchBucket", "NoSuchKey", "404"})

ORGANISATION_FORBIDS = ("The account's organisation forbids it.", "Ask the organisation's administrator.")
BOUNDARY_FORBIDS = ("A permissions boundary forbids it.", "Add the action to the boundary.")
POLICY_DENIES = (
    "A policy denies it explicitly.",
    "Find the statement with Effect Deny, and remove the action from it.",
)
# What AWS's message says of the reason, most special first.
_REASONS = {
    "service control policy": ORGANISATION_FORBIDS,
    "resource control policy": ORGANISATION_FORBIDS,
    "permissions boundary": BOUNDARY_FORBIDS,
    "explicit deny": POLICY_DENIES,
}
_NAMED_ACTION = re.compile(r"not authorized to perform: ([\w-]+:\w+)")

_UNKNOWN_KEY = (
    "AWS does not know this access key.",
    "Copy the access key ID again. If the key was deleted or switched off, make a new one.",
)
_WRONG_SECRET = (
    "The secret does not belong to this access key, or this server's clock is wrong.",
    "Copy the secret access key again; it is shown once, when the key is made.",
)
_NOT_ASSUMED = (
    "AWS did not let Starling assume this role. AWS does not say whether the role exists.",
    "Compare the role's trust policy with the one that the connection's page shows: the principal and the external id"
    " must be the same, letter by letter. A role that was just created may need half a minute.",
)
_EXPIRED = (
    "The credentials have expired.",
    "Temporary credentials cannot be stored here. Use a role, or the keys of a user.",
)
_NOT_ACCEPTED = ("AWS did not accept the credentials.", "Type them in again.")
_THROTTLED = ("AWS is throttling requests.", "Test again in a minute.")
_KNOWN: dict[str, tuple[str, str]] = {
    "InvalidClientTokenId": _UNKNOWN_KEY,
    "UnrecognizedClientException": _UNKNOWN_KEY,
    "InvalidAccessKeyId": _UNKNOWN_KEY,
    "SignatureDoesNotMatch": _WRONG_SECRET,
    "InvalidSignatureException": _WRONG_SECRET,
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
    "AuthFailure": _NOT_ACCEPTED,
    "MissingAuthenticationToken": _NOT_ACCEPTED,
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
    code = str(_error_in(error).get("Code", ""))
    if code == "403" and getattr(error, "operation_name", "").startswith("Head"):
        return "AccessDenied"  # the answer to a HEAD request has no body, so it has no name
    return code or type(error).__name__


def message_of(error: Exception) -> str:
    """Return AWS's own text; empty if AWS did not answer."""
    return str(_error_in(error).get("Message", ""))


def is_denied(error: Exception) -> bool:
    """Return True if a right is missing: by the error's code, or by AWS's words."""
    return code_of(error) in _DENIED or _NAMED_ACTION.search(message_of(error)) is not None


def refusal(error: Exception) -> Refusal:
    """Return any error of the SDK as text: never the SDK's own, which may repeat what was sent."""
    code = code_of(error)
    if is_denied(error):
        return _denied(code, error)
    known = _KNOWN.get(code) or _BY_CLASS.get(code)
    if known is None:
        words, fix = (
            f"AWS answered with {code}.",
            "Look that name up in AWS's documentation, or test again in a minute.",
        )
        return Refusal(code, words, fix)
    return Refusal(code, *known)


def _error_in(error: Exception) -> dict[str, Any]:
    """Return the error that AWS answered with, also to a waiter; empty if it did not answer with one."""
    for answer in (getattr(error, "response", None), getattr(error, "last_response", None)):
        if isinstance(answer, dict) and isinstance(answer.get("Error"), dict):
            return dict(answer["Error"])
    return {}


def _denied(code: str, error: Exception) -> Refusal:
    action, message = _refused_action(error), message_of(error)
    if action == "sts:AssumeRole":
        return Refusal(code, *_NOT_ASSUMED)
    words = f"AWS refuses {action or 'this'} to these credentials."
    for said, (why, fix) in _REASONS.items():
        if said in message:
            return Refusal(code, f"{words} {why}", fix)
    if not action:
        return Refusal(code, words, "Add it to their policy.")
    return Refusal(code, words, f"Add {action} to the policy, or copy the whole policy again.")


def _refused_action(error: Exception) -> str:
    """Return the action as policies name it: the one that AWS names, which may be another than the one that was called
    (passing a role, tagging what is created). Otherwise the one that was called; empty if neither is known.
    """
    if named := _NAMED_ACTION.search(message_of(error)):
        return named[1]
    operation = getattr(error, "operation_name", "")
    if operation == "AssumeRole":
        return "sts:AssumeRole"
    operation = OPERATIONS_NAMED_OTHERWISE.get(operation, operation)
    return next((one.action for one in AWS if one.action.partition(":")[2] == operation), "")
