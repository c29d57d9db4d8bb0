"""Lambda's data plane: runs events in environments, answers them, and meters each."""

from __future__ import annotations

import asyncio
import base64
import math
import time
import uuid
from dataclasses import dataclass

from cloud.actor.watchdog import GRACE_S, LAST_WORDS
from emulator.aws.account import EmulatedAccount, Principal
from emulator.aws.environments import Environments
from emulator.aws.errors import AwsError
from emulator.aws.functions import EmulatedFunctions, Function, FunctionVersion
from emulator.aws.logs import Logs
from emulator.aws.meter import BilledInvocation, LambdaMeter, log_of
from emulator.aws.sandbox import Ended, Sandbox, exit_error
from emulator.aws.stub_functions import StubFunction, call_id_of, deadline_of
from emulator.faults import AwsFaults
from emulator.http import Hangup, HttpRequest, HttpResponse

REQUEST_LIMIT_BYTES = 6 * 2**20
_TAIL_BYTES = 4096
_CRASH_AFTER_S = 0.02


@dataclass(frozen=True)
class _Run:
    ended: Ended
    init_s: float
    most_memory_mb: int
    output: str
    provisioned: bool


class Invocations:
    """Admits as many events as the account may have, runs each in an environment of its version, and meters it."""

    def __init__(
        self,
        account: EmulatedAccount,
        functions: EmulatedFunctions,
        faults: AwsFaults,
        meter: LambdaMeter,
        logs: Logs,
        environments: Environments,
    ) -> None:
        self._account = account
        self._functions = functions
        self._faults = faults
        self._meter = meter
        self._logs = logs
        self._environments = environments
        self.stubs: dict[str, StubFunction] = {}
        self.in_flight = 0

    async def handle(self, request: HttpRequest, caller: Principal) -> HttpResponse:
        name = self._functions.name_of(request.parts[2])
        self._account.require(caller, "lambda", "lambda:InvokeFunction", self._functions.arn(name))
        function = self._functions.get(name)
        version = function.version(request.query.get("Qualifier"))
        kind = request.headers.get("x-amz-invocation-type", "RequestResponse")
        if kind == "DryRun":
            return HttpResponse(204)
        if kind != "RequestResponse":
            raise AwsError(400, "InvalidParameterValueException", f"{kind} is not known here")
        if len(request.body) > REQUEST_LIMIT_BYTES:
            words = (
                f"Request must be smaller than {REQUEST_LIMIT_BYTES} bytes for the InvokeFunction operation"
            )
            raise AwsError(413, "RequestTooLargeException", words, Type="User")
        if time.monotonic() < function.active_s:
            words = "The operation cannot be performed at this time. The function is currently in the following state:"
            raise AwsError(409, "ResourceConflictException", f"{words} Pending", Type="User")
        self._fail_before()
        self._admit(function)
        try:
            return await self._invoke(function, version, request)
        finally:
            function.in_flight -= 1
            self.in_flight -= 1

    def _fail_before(self) -> None:
        if self._faults.strikes("lost_request"):
            raise Hangup
        if self._faults.strikes("service_error"):
            raise AwsError(500, "ServiceException", "An error occurred and the request cannot be processed.")
        if self._faults.strikes("throttle"):
            self._meter.refused["throttle"] += 1
            raise _throttled("CallerRateLimitExceeded")

    def _admit(self, function: Function) -> None:
        """Count the event in. Raises TooManyRequestsException with the reason."""
        if function.reserved is not None:
            if function.in_flight >= function.reserved:
                self._meter.refused["reserved"] += 1
                raise _throttled("ReservedFunctionConcurrentInvocationLimitExceeded")
        else:
            alive = self._functions.alive()
            limit = self._account.concurrency_in(self._functions.region) - sum(
                one.reserved or 0 for one in alive
            )
            if sum(one.in_flight for one in alive if one.reserved is None) >= limit:
                self._meter.refused["concurrency"] += 1
                raise _throttled("ConcurrentInvocationLimitExceeded")
        function.in_flight += 1
        self.in_flight += 1

    async def _invoke(
        self, function: Function, version: FunctionVersion, request: HttpRequest
    ) -> HttpResponse:
        request_id = str(uuid.uuid4())
        stub = self.stubs.get(function.name)
        if stub is not None:
            await asyncio.sleep(stub.seconds)
            line = f"starling call {call_id_of(request.body)} request {request_id}"
            ended = Ended(stub.answer(request.body), "", stub.seconds)
            run = _Run(ended, 0.0, 1, line, provisioned=False)
        else:
            run = await self._run(version, request_id, request.body)
        log = self._bill(function, version, request_id, request.body, run)
        if self._faults.strikes("lost_reply"):
            raise Hangup
        if self._faults.strikes("error_after"):
            raise AwsError(500, "ServiceException", "An error occurred and the request cannot be processed.")
        headers = {
            "Content-Type": "application/json",
            "x-amzn-RequestId": request_id,
            "X-Amz-Executed-Version": version.number,
        }
        if run.ended.error:
            headers["X-Amz-Function-Error"] = run.ended.error
        if request.headers.get("x-amz-log-type") == "Tail":
            headers["X-Amz-Log-Result"] = base64.b64encode(log.encode()[-_TAIL_BYTES:]).decode()
        return HttpResponse(200, run.ended.body, headers)

    async def _run(self, version: FunctionVersion, request_id: str, event: bytes) -> _Run:
        """Run the event in a warm environment if there is one, else in a new one."""
        sandbox = self._environments.warm(version)
        if sandbox is not None:
            return await self._use(sandbox, 0.0, request_id, event)
        sandbox = self._environments.new(version)
        try:
            extra_s = self._faults.slow_start_s if self._faults.strikes("slow_start") else 0.0
            failed = await sandbox.start(extra_s)
            init_s = sandbox.init_s * self._environments.setting.stretch(version.memory_mb)
            if failed is None:
                return await self._use(sandbox, init_s, request_id, event)
            output = sandbox.new_output()
            self._environments.end(sandbox)
            return _Run(Ended(failed.body, failed.error, 0.0), init_s, 1, output, provisioned=False)
        except asyncio.CancelledError:
            self._environments.end(sandbox)
            raise

    async def _use(self, sandbox: Sandbox, init_s: float, request_id: str, event: bytes) -> _Run:
        version = sandbox.version
        stretch = self._environments.setting.stretch(version.memory_mb)
        crash = None
        if self._faults.strikes("crash"):
            crash = asyncio.get_running_loop().call_later(_CRASH_AFTER_S, sandbox.kill)
        limit_s = float(version.timeout_s)
        if stretch > 1.0:
            # The actor's watchdog uses this machine's clock, by which the stretched deadline would come too late.
            limit_s = min(limit_s, deadline_of(event, limit_s) + GRACE_S)
        ended = await sandbox.invoke(request_id, event, limit_s / stretch, version.timeout_s)
        if crash is not None:
            crash.cancel()
        output = sandbox.new_output()
        if ended.timed_out and limit_s < version.timeout_s:
            output += f"{LAST_WORDS}of the slower clock)!"
            ended = Ended(exit_error(request_id), "Unhandled", ended.duration_s)
        run = _Run(
            Ended(ended.body, ended.error, ended.duration_s * stretch),
            init_s,
            sandbox.most_memory_mb,
            output,
            sandbox.provisioned,
        )
        self._environments.keep(sandbox)
        return run

    def _bill(
        self, function: Function, version: FunctionVersion, request_id: str, event: bytes, run: _Run
    ) -> str:
        """Add a line to the meter. Return the log with its REPORT line."""
        billed = BilledInvocation(
            request_id,
            function.name,
            call_id_of(event),
            version.memory_mb,
            max(1, math.ceil(round((run.ended.duration_s + run.init_s) * 1000, 3))),
            run.init_s * 1000,
            run.provisioned,
            run.ended.error,
        )
        self._meter.invocations.append(billed)
        lines = log_of(billed, version.number, run.ended.duration_s, run.most_memory_mb, run.output)
        self._logs.write(f"/aws/lambda/{function.name}", lines)
        return "\n".join(lines) + "\n"


def _throttled(reason: str) -> AwsError:
    return AwsError(429, "TooManyRequestsException", "Rate Exceeded.", Reason=reason, Type="User")
