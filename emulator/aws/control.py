"""Lambda's control plane: create, change, describe, tag and delete functions; read the account's limits."""

from __future__ import annotations

import json
import re
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emulator.aws.account import EmulatedAccount, Principal
from emulator.aws.errors import AwsError
from emulator.aws.functions import (
    LATEST,
    UNZIPPED_LIMIT_BYTES,
    ZIPPED_LIMIT_BYTES,
    EmulatedFunctions,
    Function,
    Provisioned,
    as_json,
    invalid,
)
from emulator.faults import AwsFaults
from emulator.http import Hangup, HttpRequest, HttpResponse

_FUNCTION = r"/[\d-]+/functions/(?P<name>[^/]+)"
_LEAST_UNRESERVED = 100
_JSON = {"Content-Type": "application/json"}

# Name, method, path, and the status of a success.
_OPERATIONS: tuple[tuple[str, str, str, int], ...] = (
    ("CreateFunction", "POST", r"/[\d-]+/functions", 201),
    ("GetFunction", "GET", _FUNCTION, 200),
    ("GetFunctionConfiguration", "GET", _FUNCTION + "/configuration", 200),
    ("UpdateFunctionCode", "PUT", _FUNCTION + "/code", 200),
    ("UpdateFunctionConfiguration", "PUT", _FUNCTION + "/configuration", 200),
    ("DeleteFunction", "DELETE", _FUNCTION, 204),
    ("PublishVersion", "POST", _FUNCTION + "/versions", 201),
    ("PutProvisionedConcurrencyConfig", "PUT", _FUNCTION + "/provisioned-concurrency", 202),
    # With List in its query, this address is ListProvisionedConcurrencyConfigs.
    ("GetProvisionedConcurrencyConfig", "GET", _FUNCTION + "/provisioned-concurrency", 200),
    ("DeleteProvisionedConcurrencyConfig", "DELETE", _FUNCTION + "/provisioned-concurrency", 204),
    ("GetAccountSettings", "GET", r"/[\d-]+/account-settings/?", 200),
    ("ListTags", "GET", r"/[\d-]+/tags/(?P<name>.+)", 200),
    ("TagResource", "POST", r"/[\d-]+/tags/(?P<name>.+)", 204),
)
_PATTERNS = tuple(
    (name, method, re.compile(path + "$"), status) for name, method, path, status in _OPERATIONS
)
_REPLIES_GET_LOST = {"PutProvisionedConcurrencyConfig", "DeleteProvisionedConcurrencyConfig"}


@dataclass(frozen=True)
class _Call:
    """A request: the function that it names, its JSON, its query and who sent it."""

    name: str
    given: dict[str, Any]
    query: dict[str, str]
    caller: Principal


class LambdaControl:
    """One method for each operation, found by its name. `retire` ends the sandboxes of a function's old versions."""

    def __init__(
        self,
        account: EmulatedAccount,
        functions: EmulatedFunctions,
        faults: AwsFaults,
        retire: Callable[[Function], None],
        provision: Callable[[Function, str, Provisioned | None], None],
    ) -> None:
        self._account = account
        self._functions = functions
        self._faults = faults
        self._retire = retire
        self._provision = provision

    def handle(self, request: HttpRequest, caller: Principal) -> HttpResponse:
        path = urllib.parse.unquote(request.raw_path)
        for operation, method, pattern, status in _PATTERNS:
            match = pattern.match(path)
            if match is None or method != request.method:
                continue
            given = json.loads(request.body) if request.body else {}
            name = self._functions.name_of(match.groupdict().get("name") or given.get("FunctionName", ""))
            resource = "*" if operation == "GetAccountSettings" else self._functions.arn(name)
            if operation == "GetProvisionedConcurrencyConfig" and "List" in request.query:
                operation = "ListProvisionedConcurrencyConfigs"
            self._account.require(caller, "lambda", f"lambda:{operation}", resource)
            if self._faults.strikes("throttle"):
                raise AwsError(
                    429, "TooManyRequestsException", "Rate exceeded", Reason="CallerRateLimitExceeded"
                )
            call = _Call(name, given, request.query, caller)
            answer = getattr(self, f"_{_snake(operation)}")(call)
            if operation in _REPLIES_GET_LOST and self._faults.strikes("lost_reply"):
                raise Hangup
            return HttpResponse(
                status, b"" if status == 204 else as_json(answer), {} if status == 204 else _JSON
            )
        raise AwsError(404, "ResourceNotFoundException", f"{request.method} {path} is not known here")

    def _create_function(self, call: _Call) -> Any:
        role = str(call.given["Role"])
        self._account.require(call.caller, "lambda", "iam:PassRole", role)
        if call.given.get("Tags"):
            arn = self._functions.arn(call.name)
            self._account.require(call.caller, "lambda", "lambda:TagResource", arn)
        if self._account.role_of_functions(role) is None:
            raise invalid("The role defined for the function cannot be assumed by Lambda.")
        slow_s = self._faults.slow_start_s if self._faults.strikes("slow_start") else 0.0
        function = self._functions.create(call.given, delay_s=self._faults.visibility_delay_s, slow_s=slow_s)
        if call.given.get("Publish"):
            self._functions.publish(function)
        return function.described(function.latest, time.monotonic())

    def _get_function(self, call: _Call) -> Any:
        function = self._functions.get(call.name)
        version = function.version(call.query.get("Qualifier"))
        description: dict[str, Any] = {
            "Configuration": function.described(version, time.monotonic()),
            "Code": {"RepositoryType": "S3", "Location": "https://emulated.invalid/code"},
            "Tags": function.tags,
        }
        if function.reserved is not None:
            description["Concurrency"] = {"ReservedConcurrentExecutions": function.reserved}
        return description

    def _get_function_configuration(self, call: _Call) -> Any:
        function = self._functions.get(call.name)
        return function.described(function.version(call.query.get("Qualifier")), time.monotonic())

    def _update_function_code(self, call: _Call) -> Any:
        function = self._functions.get(call.name)
        function.latest = self._functions.coded(function.latest, call.given)
        self._retire(function)
        version = self._functions.publish(function) if call.given.get("Publish") else function.latest
        return function.described(version, time.monotonic())

    def _update_function_configuration(self, call: _Call) -> Any:
        function = self._functions.get(call.name)
        function.latest = self._functions.configured(function.latest, call.given)
        self._retire(function)
        return function.described(function.latest, time.monotonic())

    def _delete_function(self, call: _Call) -> None:
        function = self._functions.get(call.name)
        qualifier = call.query.get("Qualifier")
        if qualifier and qualifier != LATEST:
            function.versions.pop(qualifier, None)
            self._provision(function, qualifier, None)
            return
        if self._faults.strikes("zombie_delete"):
            return
        function.gone_s = time.monotonic() + self._faults.visibility_delay_s
        for number in list(function.provisioned):
            self._provision(function, number, None)
        self._retire(function)

    def _publish_version(self, call: _Call) -> Any:
        function = self._functions.get(call.name)
        return function.described(self._functions.publish(function), time.monotonic())

    def _put_provisioned_concurrency_config(self, call: _Call) -> Any:
        function, number = self._functions.get(call.name), call.query["Qualifier"]
        wanted = int(call.given["ProvisionedConcurrentExecutions"])
        if number == LATEST:
            raise invalid(
                "Provisioned Concurrency Configs cannot be applied to unpublished function versions."
            )
        function.version(number)
        others = sum(one.reserved or 0 for one in self._functions.alive())
        if wanted > self._account.concurrency_in(self._functions.region) - others - _LEAST_UNRESERVED:
            raise invalid(
                "Specified ConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below"
                f" its minimum value of [{_LEAST_UNRESERVED}]."
            )
        existing = function.provisioned.get(number)
        if existing is not None and existing.wanted == wanted:
            # The same request again, as after a lost reply, changes nothing.
            return _config(existing)
        visible_s = time.monotonic() + self._faults.visibility_delay_s
        function.provisioned[number] = Provisioned(wanted, visible_s=visible_s)
        self._provision(function, number, function.provisioned[number])
        return _config(function.provisioned[number])

    def _get_provisioned_concurrency_config(self, call: _Call) -> Any:
        function = self._functions.get(call.name)
        provisioned = function.provisioned.get(call.query["Qualifier"])
        if provisioned is None:
            raise AwsError(
                404,
                "ProvisionedConcurrencyConfigNotFoundException",
                "No Provisioned Concurrency Config found for this function",
            )
        return _config(provisioned)

    def _list_provisioned_concurrency_configs(self, call: _Call) -> Any:
        function, now_s = self._functions.get(call.name), time.monotonic()
        shown = sorted(
            (number, config) for number, config in function.provisioned.items() if config.visible_s <= now_s
        )
        configs = [{"FunctionArn": f"{function.arn}:{number}", **_config(config)} for number, config in shown]
        return {"ProvisionedConcurrencyConfigs": configs}

    def _delete_provisioned_concurrency_config(self, call: _Call) -> None:
        function = self._functions.get(call.name)
        if not self._faults.strikes("zombie_delete"):
            self._provision(function, call.query["Qualifier"], None)

    def _get_account_settings(self, call: _Call) -> Any:
        alive = self._functions.alive()
        reserved = sum(function.reserved or 0 for function in alive)
        return {
            "AccountLimit": {
                "TotalCodeSize": 80_530_636_800,
                "CodeSizeUnzipped": UNZIPPED_LIMIT_BYTES,
                "CodeSizeZipped": ZIPPED_LIMIT_BYTES,
                "ConcurrentExecutions": self._account.concurrency_in(self._functions.region),
                "UnreservedConcurrentExecutions": self._account.concurrency_in(self._functions.region)
                - reserved,
            },
            "AccountUsage": {
                "TotalCodeSize": sum(function.latest.code_bytes for function in alive),
                "FunctionCount": len(alive),
            },
        }

    def _list_tags(self, call: _Call) -> Any:
        return {"Tags": self._functions.get(call.name).tags}

    def _tag_resource(self, call: _Call) -> None:
        self._functions.get(call.name).tags.update(call.given["Tags"])


def _config(provisioned: Provisioned) -> dict[str, Any]:
    ready = provisioned.ready >= provisioned.wanted
    status = "FAILED" if provisioned.failed else "READY" if ready else "IN_PROGRESS"
    return {
        "RequestedProvisionedConcurrentExecutions": provisioned.wanted,
        "AvailableProvisionedConcurrentExecutions": provisioned.ready,
        "AllocatedProvisionedConcurrentExecutions": provisioned.ready,
        "Status": status,
        **({"StatusReason": "FUNCTION_ERROR_INIT_FAILURE"} if provisioned.failed else {}),
        "LastModified": provisioned.modified,
    }


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
