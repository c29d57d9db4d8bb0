"""STS and IAM: the caller's identity, sessions of roles, and simulated policies."""

from __future__ import annotations

import datetime
import uuid
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from emulator.aws.account import EmulatedAccount, Principal
from emulator.aws.errors import AwsError
from emulator.http import HttpRequest, HttpResponse


class IdentityApi:
    """The query protocol: a form in, XML out."""

    def __init__(self, account: EmulatedAccount) -> None:
        self._account = account

    def handle(self, request: HttpRequest, caller: Principal, service: str) -> HttpResponse:
        form = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
        action = form.get("Action", "")
        match service, action:
            case "sts", "GetCallerIdentity":
                account_id = caller.arn.split(":")[4]
                result = _tags(Arn=caller.arn, UserId=caller.user_id, Account=account_id)
            case "sts", "AssumeRole":
                result = self._assume(form, caller)
            case "iam", "SimulatePrincipalPolicy":
                result = self._simulate(form, caller)
            case _:
                raise AwsError(400, "InvalidAction", f"{service} does not know {action} here")
        body = (
            f"<{action}Response><{action}Result>{result}</{action}Result>"
            f"<ResponseMetadata><RequestId>{uuid.uuid4()}</RequestId></ResponseMetadata></{action}Response>"
        )
        return HttpResponse(200, body.encode(), {"Content-Type": "text/xml"})

    def _assume(self, form: dict[str, str], caller: Principal) -> str:
        key = self._account.assume(
            caller,
            form["RoleArn"],
            form["RoleSessionName"],
            form.get("ExternalId"),
            int(form.get("DurationSeconds", "0")),
        )
        expires = datetime.datetime.fromtimestamp(key.expires_unix_s or 0, datetime.UTC)
        credentials = _tags(
            AccessKeyId=key.access_key_id,
            SecretAccessKey=key.secret,
            SessionToken=key.token or "",
            Expiration=expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        principal = key.principal
        user = _tags(Arn=principal.arn, AssumedRoleId=principal.user_id)
        return f"<Credentials>{credentials}</Credentials><AssumedRoleUser>{user}</AssumedRoleUser>"

    def _simulate(self, form: dict[str, str], caller: Principal) -> str:
        source = form["PolicySourceArn"]
        self._account.require(caller, "iam", "iam:SimulatePrincipalPolicy", source)
        if ":assumed-role/" in source:
            raise AwsError(
                400, "InvalidInput", f"Invalid Entity Arn: {source} does not clearly define entity type"
            )
        actions, resources = _members(form, "ActionNames"), _members(form, "ResourceArns") or ["*"]
        results = []
        for action in actions:
            for resource in resources:
                allowed = self._account.simulated(source, action, resource)
                decision = "allowed" if allowed else "implicitDeny"
                result = _tags(EvalActionName=action, EvalResourceName=resource, EvalDecision=decision)
                results.append(f"<member>{result}</member>")
        return f"<IsTruncated>false</IsTruncated><EvaluationResults>{''.join(results)}</EvaluationResults>"


def _members(form: dict[str, str], name: str) -> list[str]:
    prefix = f"{name}.member."
    numbered = {int(key.removeprefix(prefix)): value for key, value in form.items() if key.startswith(prefix)}
    return [numbered[number] for number in sorted(numbered)]


def _tags(**values: str) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in values.items())
