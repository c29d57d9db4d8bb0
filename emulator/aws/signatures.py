"""Authenticates requests: signatures of version 4 are computed again with the SDK's own code."""

from __future__ import annotations

import datetime
import hashlib
import hmac
from collections.abc import Container
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from emulator.aws.account import EmulatedAccount, Key, Principal
from emulator.aws.errors import AwsError
from emulator.http import HttpRequest

_CLOCK_SKEW_S = 900
_GLOBAL_REGION = "us-east-1"
_UNSIGNED = {"UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}


@dataclass(frozen=True)
class Claim:
    """The contents of a signature, not checked yet."""

    access_key_id: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str
    timestamp: str
    token: str | None
    expires_s: int | None = None

    @staticmethod
    def of(request: HttpRequest) -> Claim:
        header = request.headers.get("authorization", "")
        if header.startswith("AWS4-HMAC-SHA256 "):
            fields = dict(part.strip().split("=", 1) for part in header.split(" ", 1)[1].split(","))
            credential, signed = fields["Credential"], fields["SignedHeaders"]
            token = request.headers.get("x-amz-security-token")
            when = request.headers.get("x-amz-date", "")
            return Claim(*_scope(credential), tuple(signed.split(";")), fields["Signature"], when, token)
        query = request.query
        if query.get("X-Amz-Algorithm") == "AWS4-HMAC-SHA256":
            return Claim(
                *_scope(query["X-Amz-Credential"]),
                tuple(query["X-Amz-SignedHeaders"].split(";")),
                query["X-Amz-Signature"],
                query["X-Amz-Date"],
                query.get("X-Amz-Security-Token"),
                int(query["X-Amz-Expires"]),
            )
        raise AwsError(403, "MissingAuthenticationToken", "Request is missing Authentication Token")


def _scope(credential: str) -> tuple[str, str, str]:
    key, _, region, service, _ = credential.split("/")
    return key, region, service


def sender(request: HttpRequest, claim: Claim, account: EmulatedAccount) -> Principal:
    """Return who signed the request. Raises AwsError if key, time or signature is not valid."""
    key = account.keys.get(claim.access_key_id)
    now_unix_s = account.now_unix_s()
    if key is None or key.token != claim.token:
        raise _no_such_key(claim.service)
    if key.expires_unix_s is not None and key.expires_unix_s <= now_unix_s:
        code = {"s3": "ExpiredToken", "lambda": "ExpiredTokenException", "logs": "ExpiredTokenException"}
        status = 400 if claim.service in {"s3", "logs"} else 403
        raise AwsError(
            status,
            code.get(claim.service, "ExpiredToken"),
            "The security token included in the request is expired",
        )
    _check_time(claim, now_unix_s)
    if not hmac.compare_digest(_signature(request, claim, key), claim.signature):
        raise _bad_signature(claim.service)
    claimed = request.headers.get("x-amz-content-sha256", "")
    counts = claim.expires_s is None and claimed and claimed not in _UNSIGNED
    if counts and hashlib.sha256(request.body).hexdigest() != claimed:
        raise _bad_signature(claim.service)
    return key.principal


def check_region(claim: Claim, regions: Container[str]) -> None:
    """Raise AwsError if the request was signed for a region that the account does not have.

    IAM and the first address of STS belong to no region and are signed for us-east-1.
    """
    if claim.region in regions or (claim.service in {"iam", "sts"} and claim.region == _GLOBAL_REGION):
        return
    if claim.service == "s3":
        words = f"the region '{claim.region}' is wrong"
        raise AwsError(400, "AuthorizationHeaderMalformed", f"The authorization header is malformed; {words}")
    refused = _bad_signature(claim.service)
    refused.message = f"Credential should be scoped to a valid region, and not {claim.region}."
    raise refused


def _no_such_key(service: str) -> AwsError:
    words = "The security token included in the request is invalid."
    if service == "s3":
        return AwsError(
            403, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."
        )
    return AwsError(
        403, "InvalidClientTokenId" if service in {"sts", "iam"} else "UnrecognizedClientException", words
    )


def _bad_signature(service: str) -> AwsError:
    code = "SignatureDoesNotMatch" if service in {"s3", "sts", "iam"} else "InvalidSignatureException"
    words = "The request signature we calculated does not match the signature you provided."
    return AwsError(403, code, words)


def _check_time(claim: Claim, now_unix_s: float) -> None:
    when = datetime.datetime.strptime(claim.timestamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.UTC)
    age_s = now_unix_s - when.timestamp()
    if claim.expires_s is not None:
        if age_s > claim.expires_s or age_s < -_CLOCK_SKEW_S:
            raise AwsError(403, "AccessDenied", "Request has expired")
    elif abs(age_s) > _CLOCK_SKEW_S:
        raise AwsError(
            403, "RequestTimeTooSkewed", "The difference between the request time and ours is too large."
        )


def _signature(request: HttpRequest, claim: Claim, key: Key) -> str:
    credentials = Credentials(key.access_key_id, key.secret, key.token)
    signed = {name: request.headers.get(name, "") for name in claim.signed_headers}
    target = request.target
    if claim.expires_s is not None:
        pairs = parse_qsl(target.partition("?")[2], keep_blank_values=True)
        kept = (f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in pairs)
        target = f"{request.raw_path}?" + "&".join(
            part for part in kept if not part.startswith("X-Amz-Signature=")
        )
        signer = S3SigV4QueryAuth(credentials, claim.service, claim.region)
    elif claim.service == "s3":
        signer = S3SigV4Auth(credentials, claim.service, claim.region)
    else:
        signer = SigV4Auth(credentials, claim.service, claim.region)
    url = f"http://{request.headers.get('host', '')}{target}"
    again = AWSRequest(method=request.method, url=url, headers=signed, data=request.body)
    again.context["timestamp"] = claim.timestamp
    words = signer.string_to_sign(again, signer.canonical_request(again))
    signature: str = signer.signature(words, again)
    return signature
