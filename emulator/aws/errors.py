"""AWS's errors. Each service writes them in its own form."""

from __future__ import annotations

import json
import uuid
from xml.sax.saxutils import escape

from emulator.http import HttpResponse


class AwsError(Exception):
    """An error that a service answers with. `more` are further members of the error's shape."""

    def __init__(self, status: int, code: str, message: str, **more: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.more = more


def as_response(service: str, error: AwsError) -> HttpResponse:
    request_id = str(uuid.uuid4())
    if service == "s3":
        more = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in error.more.items())
        body = (
            f"<Error><Code>{error.code}</Code><Message>{escape(error.message)}</Message>{more}"
            f"<RequestId>{request_id}</RequestId></Error>"
        )
        return HttpResponse(error.status, body.encode(), {"Content-Type": "application/xml"})
    if service in {"sts", "iam"}:
        body = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{error.code}</Code>"
            f"<Message>{escape(error.message)}</Message></Error><RequestId>{request_id}</RequestId></ErrorResponse>"
        )
        return HttpResponse(error.status, body.encode(), {"Content-Type": "text/xml"})
    document = {"__type": error.code, "message": error.message, **error.more}
    headers = {
        "Content-Type": "application/json",
        "x-amzn-ErrorType": error.code,
        "x-amzn-RequestId": request_id,
    }
    if error.status == 429:
        headers["Retry-After"] = "1"
    return HttpResponse(error.status, json.dumps(document).encode(), headers)


def access_denied(service: str, principal: str, action: str, resource: str) -> AwsError:
    code = "AccessDenied" if service in {"s3", "sts", "iam"} else "AccessDeniedException"
    words = f"User: {principal} is not authorized to perform: {action} on resource: {resource}"
    return AwsError(403, code, f"{words} because no identity-based policy allows the {action} action")
