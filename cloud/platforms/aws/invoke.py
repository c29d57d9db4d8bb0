"""One invocation of a function: its result or failure, and whether it can have cost anything.

Each invocation is sent once. `Reply.ran` is True if the function ran, False if it certainly did not, None if that is
not known. Only a call that certainly did not run may be sent again under the same id.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any

from cloud.actor import json_limits
from cloud.actor.watchdog import LAST_WORDS
from cloud.failures import Failure
from cloud.platforms.aws import error_text as aws_words
from cloud.platforms.aws.request_body import Pieces

REQUEST_LIMIT_BYTES = 6 * 2**20
# In base64, beside the call's other fields.
INLINE_AT_MOST_BYTES = (REQUEST_LIMIT_BYTES - 16 * 2**10) // 4 * 3
RESPONSE_LIMIT_BYTES = 6 * 2**20 + 2048
_REPORT = re.compile(
    r"REPORT RequestId: (?P<id>\S+)\s+Duration: (?P<duration>[\d.]+) ms\s+Billed Duration: (?P<billed>\d+) ms\s+"
    r"Memory Size: (?P<memory>\d+) MB\s+Max Memory Used: (?P<most>\d+) MB(?:\s+Init Duration: (?P<init>[\d.]+) ms)?"
)
_STUCK_FRAMES = 3
_WORDS_SHOWN = 500

# AWS throttles, or is not ready, before anything runs.
_NOT_NOW = {
    "TooManyRequestsException",
    "ThrottlingException",
    "EC2ThrottledException",
    "ENILimitReachedException",
    "ENINotReadyException",
    "ResourceNotReadyException",
    "ResourceConflictException",
    "SnapStartNotReadyException",
}
_NOT_AUTHORISED = {
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
    "MissingAuthenticationToken",
}


@dataclass(frozen=True)
class Report:
    """The provider's log line about an execution, by which it bills. `provisioned`: the actor's line says so."""

    request_id: str
    duration_s: float
    billed_s: float
    init_s: float
    memory_mb: int
    most_memory_mb: int
    provisioned: bool = False

    @property
    def words(self) -> str:
        return f"it used up to {self.most_memory_mb} of {self.memory_mb} MB"


@dataclass(frozen=True)
class Reply:
    """A body, or a failure. `again`: it did not run and may be sent once more."""

    body: bytes | None = None
    failure: Failure | None = None
    report: Report | None = None
    ran: bool | None = None
    again: bool = False


def invoke(
    client: Any, function: str, payload: Pieces, qualifier: str | None = None, bucket_failure: str = ""
) -> Reply:
    """Invoke the function once and return its reply. The client must not retry by itself.

    `bucket_failure`: why the weights are in the call although there is a bucket for them.
    """
    if len(payload) > REQUEST_LIMIT_BYTES:
        held = len(payload) / 2**20
        fix = bucket_failure or "add a bucket, from which networks are fetched"
        words = f"the call has {held:.1f} MiB; a function takes 6 MiB: {fix}"
        return Reply(failure=Failure("request_too_large", words), ran=False)
    request = {"FunctionName": function, "Payload": payload, "LogType": "Tail"}
    if qualifier is not None:
        request["Qualifier"] = qualifier
    try:
        answer = client.invoke(**request)
        body = answer["Payload"].read(RESPONSE_LIMIT_BYTES + 1)
    except Exception as error:
        return failed(error, function)
    log = _log_of(answer)
    report = report_in(log)
    if answer.get("FunctionError"):
        return Reply(failure=function_error(body, log, report), report=report, ran=True)
    return Reply(body=body, report=report, ran=True)


def report_in(log: str) -> Report | None:
    """Return the last REPORT line of a log."""
    lines = list(_REPORT.finditer(log))
    if not lines:
        return None
    report = lines[-1]
    return Report(
        request_id=report["id"],
        duration_s=float(report["duration"]) / 1000,
        billed_s=int(report["billed"]) / 1000,
        init_s=float(report["init"] or 0.0) / 1000,
        memory_mb=int(report["memory"]),
        most_memory_mb=int(report["most"]),
    )


def failed(error: Exception, function: str) -> Reply:
    """Return what an error of the SDK means for the call. Its text names no credential."""
    from botocore import exceptions as sdk

    if isinstance(error, sdk.ClientError):
        return _client_error(error, function)
    if isinstance(error, sdk.ConnectTimeoutError | sdk.EndpointConnectionError | sdk.ProxyConnectionError):
        words = "AWS could not be reached"
        return Reply(failure=Failure("function_failed", words), ran=False, again=True)
    if isinstance(error, sdk.NoCredentialsError | sdk.CredentialRetrievalError | sdk.PartialCredentialsError):
        why = aws_words.refusal(error)
        return Reply(failure=Failure("credentials", f"{why.words} {why.fix}"), ran=False)
    if isinstance(error, sdk.ParamValidationError):
        return Reply(failure=Failure("cloud_refused", _short(error)), ran=False)
    if isinstance(error, sdk.ReadTimeoutError):
        words = "no answer came in time; it is not known whether the function ran"
        return Reply(failure=Failure("function_failed", words))
    words = f"the connection broke before the answer came ({type(error).__name__}); the function may have run"
    return Reply(failure=Failure("function_failed", words))


def _client_error(error: Any, function: str) -> Reply:
    details = error.response.get("Error", {})
    code, message = str(details.get("Code", "")), str(details.get("Message", ""))[:_WORDS_SHOWN]
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _NOT_NOW or status == 429:
        reason = str(error.response.get("Reason") or code)
        words = f"AWS is throttling calls: {reason}"
        return Reply(failure=Failure("function_failed", words), ran=False, again=True)
    if code in _NOT_AUTHORISED or aws_words.is_denied(error):
        why = aws_words.refusal(error)
        words = f"{why.words} {why.fix}"
        return Reply(failure=Failure("credentials", words), ran=False)
    if code == "ResourceNotFoundException":
        words = f"there is no function {function} in this account and region; set the connection up first"
        return Reply(failure=Failure("function_missing", words), ran=False)
    if code == "RequestTooLargeException" or status == 413:
        return Reply(failure=Failure("request_too_large", message), ran=False)
    if 400 <= status < 500:
        return Reply(failure=Failure("cloud_refused", f"{code}: {message}"), ran=False)
    words = f"AWS had an error of its own ({code} {status}); the function may have run"
    return Reply(failure=Failure("function_failed", words))


def function_error(body: bytes, log: str, report: Report | None) -> Failure:
    """Return why the function's process failed: the body says how, the log where."""
    try:
        error = json_limits.read_few(body)
        kind, message = str(error["errorType"]), str(error["errorMessage"])[:_WORDS_SHOWN]
    except (ValueError, KeyError, TypeError):
        kind, message = "Unknown", body[:_WORDS_SHOWN].decode(errors="replace")
    used = f"; {report.words}" if report is not None else ""
    match kind:
        case "Sandbox.Timedout":
            return Failure("deadline", f"took longer than the function's own limit{used}")
        case "Runtime.ExitError" if LAST_WORDS in log:
            return Failure("deadline", f"took longer than its deadline, stuck in{_stuck_in(log)}")
        case "Runtime.ExitError" | "Runtime.OutOfMemory" if "signal: killed" in message or kind.endswith(
            "Memory"
        ):
            return Failure("function_failed", f"the function was killed, mostly for lack of memory{used}")
        case "Runtime.ExitError":
            return Failure("function_failed", f"the function's process ended: {message}{used}")
        case "Runtime.ImportModuleError" | "Runtime.HandlerNotFound" | "Runtime.UserCodeSyntaxError":
            return Failure("bundle", f"the function's code cannot be loaded; set it up again: {message}")
        case "Function.ResponseSizeTooLarge":
            return Failure(
                "result_too_large", f"the result is larger than a function may send back: {message}"
            )
    return Failure("error", f"{kind}: {message}")


def _stuck_in(log: str) -> str:
    frames = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', log[log.index(LAST_WORDS) :])
    shown = (
        f"{'/'.join(file.split('/')[-3:])}:{line} ({name})" for file, line, name in frames[:_STUCK_FRAMES]
    )
    return " " + " ← ".join(shown) if frames else " foreign code"


def _log_of(answer: Any) -> str:
    return base64.b64decode(answer.get("LogResult") or b"").decode(errors="replace")


def _short(error: Exception) -> str:
    return str(error)[:_WORDS_SHOWN]
