"""The tagging API: finds the account's functions by their tags."""

from __future__ import annotations

import json
from typing import Any

from emulator.aws import cbor
from emulator.aws.account import EmulatedAccount, Principal
from emulator.aws.errors import AwsError
from emulator.aws.functions import EmulatedFunctions
from emulator.http import HttpRequest, HttpResponse


class Tagging:
    """GetResources, in the SDK's newer protocol (CBOR) and in its older one (JSON)."""

    def __init__(self, account: EmulatedAccount, functions: EmulatedFunctions) -> None:
        self._account = account
        self._functions = functions

    def handle(self, request: HttpRequest, caller: Principal) -> HttpResponse:
        new = request.headers.get("smithy-protocol") == "rpc-v2-cbor"
        action = request.parts[-1] if new else request.headers.get("x-amz-target", "").rpartition(".")[2]
        if action != "GetResources":
            raise AwsError(400, "UnknownOperationException", f"{action} is not known here")
        self._account.require(caller, "tagging", "tag:GetResources", "*")
        given: dict[str, Any] = cbor.loads(request.body) if new else json.loads(request.body)
        answer = {"PaginationToken": "", "ResourceTagMappingList": self._found(given)}
        if new:
            headers = {"Content-Type": "application/cbor", "smithy-protocol": "rpc-v2-cbor"}
            return HttpResponse(200, cbor.dumps(answer), headers)
        return HttpResponse(200, json.dumps(answer).encode(), {"Content-Type": "application/x-amz-json-1.1"})

    def _found(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        filters = [(tag["Key"], set(tag.get("Values") or ())) for tag in given.get("TagFilters") or ()]
        return [
            {
                "ResourceARN": function.arn,
                "Tags": [{"Key": key, "Value": value} for key, value in sorted(function.tags.items())],
            }
            for function in self._functions.seen()
            if all(
                key in function.tags and (not values or function.tags[key] in values)
                for key, values in filters
            )
        ]
