"""Errors of Azure's resource manager."""

from __future__ import annotations

import uuid

from emulator.http import HttpResponse, json_response


class ArmError(Exception):
    """An error that the resource manager answers with; `headers` are the answer's."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def as_response(error: ArmError) -> HttpResponse:
    document = {"error": {"code": error.code, "message": error.message}}
    headers = {"x-ms-request-id": str(uuid.uuid4()), **error.headers}
    return json_response(error.status, document, **headers)


def not_found(path: str) -> ArmError:
    return ArmError(404, "ResourceNotFound", f"The Resource '{path}' under resource group was not found.")


def denied(client_id: str, action: str, scope: str) -> ArmError:
    words = f"The client '{client_id}' does not have authorization to perform action '{action}' over scope '{scope}'."
    return ArmError(403, "AuthorizationFailed", words)


def throttled(words: str, retry_after_s: int) -> ArmError:
    return ArmError(429, "TooManyRequests", words, Retry_After=str(max(1, retry_after_s)))
