"""The test of a connection to AWS. It only reads, and each check has its own result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from cloud.accounts.checks import AccountCheck, Findings, Quota, Unanswered
from cloud.accounts.provision.permissions import AWS, BEYOND, SHARED_PREFIX, Permission, Target
from cloud.accounts.provision.policies import AwsScope
from cloud.platforms.aws.error_text import (
    ABSENT,
    BOUNDARY_FORBIDS,
    ORGANISATION_FORBIDS,
    POLICY_DENIES,
    code_of,
    is_denied,
    refusal,
)
from cloud.platforms.aws.functions import function_name

NOT_ROOT = "Not the account's root user"
ROLE_DEMANDS_ID = "The role demands the external id"
NO_MORE_RIGHTS = "No more rights than needed"
_SESSION_NAME = "starling-check"
_SHORTEST_SESSION_S = 900
_FEW = 100
_SIMULATE = "iam:SimulatePrincipalPolicy"


class ClientMaker(Protocol):
    """Makes an SDK client. Without credentials: with the connection's own, which assume the role if there is one."""

    def __call__(self, service: str, credentials: Mapping[str, str] | None = None) -> Any: ...


@dataclass(frozen=True)
class AwsQuestion:
    """The connection to test, and what was set up there. A role has `role_arn` and `external_id`, keys have neither."""

    region: str
    role_arn: str = ""
    external_id: str = ""
    prefix: str = SHARED_PREFIX
    memory_mb: Sequence[int] = ()
    """The sizes of functions that are set up."""
    bucket: str | None = None


def check_aws(make: ClientMaker, question: AwsQuestion, findings: Findings) -> None:
    """Add every check that changes nothing in the account. Raises Unanswered if further checks are impossible."""
    credentials = _assume_role(make("sts"), question, findings) if question.role_arn else None
    arn = _identity(make("sts", credentials), findings)
    scope = AwsScope(question.region, findings.account, question.prefix, question.role_arn or arn)
    known = {"lambda:GetAccountSettings": _limits(make("lambda", credentials), findings)}
    simulation = _Simulation(make("iam", credentials), scope)
    if _is_root(arn):
        findings.found(
            AccountCheck(
                NOT_ROOT,
                False,
                "These keys belong to the account's root user, whose rights cannot be restricted.",
                "Make a user with the policy shown here and use that user's keys. Then delete the root user's keys.",
            )
        )
        return
    if simulation.refused:
        known.update(_probes(make, credentials, scope))
    findings.found(*(_row(permission, scope, known, simulation) for permission in AWS))
    functions = make("lambda", credentials)
    findings.found(*(_function_there(functions, scope, size) for size in question.memory_mb))
    if question.bucket:
        findings.found(_bucket_there(make("s3", credentials), question.bucket))
    if not simulation.refused:
        findings.found(_narrow(simulation))


# Identity


def _assume_role(sts: Any, question: AwsQuestion, findings: Findings) -> dict[str, str]:
    """Return credentials of the role."""
    name = "Starling may assume the role"
    wanted = {
        "RoleArn": question.role_arn,
        "RoleSessionName": _SESSION_NAME,
        "DurationSeconds": _SHORTEST_SESSION_S,
    }
    try:
        answer = sts.assume_role(**wanted, ExternalId=question.external_id)
    except Exception as error:
        findings.found(_not_assumed(name, error))
        raise Unanswered from None
    findings.found(AccountCheck(name, True, "The role trusts this installation."))
    findings.found(_external_id_needed(sts, wanted))
    given = answer["Credentials"]
    return {key: str(given[key]) for key in ("AccessKeyId", "SecretAccessKey", "SessionToken")}


def _not_assumed(name: str, error: Exception) -> AccountCheck:
    why = refusal(error)
    return AccountCheck(name, False, why.words, why.fix)


def _external_id_needed(sts: Any, wanted: Mapping[str, Any]) -> AccountCheck:
    """Return the check that the role cannot be assumed without the id, by which others could use it through us."""
    name = ROLE_DEMANDS_ID
    try:
        sts.assume_role(**wanted)
    except Exception as error:
        if is_denied(error):
            return AccountCheck(
                name, True, "Without this connection's external id, no one can use the role through us."
            )
        return AccountCheck(name, None, f"This could not be checked: {refusal(error).words}")
    return AccountCheck(
        name,
        False,
        "The role can be assumed without the external id, so anyone who knows its name could use it through us.",
        "Add the condition on sts:ExternalId to the role's trust policy, as it is shown here.",
    )


def _identity(sts: Any, findings: Findings) -> str:
    name = "The credentials are valid"
    try:
        answer = sts.get_caller_identity()
    except Exception as error:
        why = refusal(error)
        findings.found(AccountCheck(name, False, why.words, why.fix))
        raise Unanswered from None
    findings.account, findings.identity = str(answer["Account"]), str(answer["Arn"])
    findings.found(AccountCheck(name, True, f"They belong to account {findings.account}."))
    return findings.identity


def _is_root(arn: str) -> bool:
    return arn.endswith(":root")


# Quotas


def _limits(client: Any, findings: Findings) -> bool | None:
    """Add the quotas. Return whether reading them is allowed, None if that is not known."""
    try:
        limit = client.get_account_settings()["AccountLimit"]
    except Exception as error:
        if is_denied(error):
            return False
        why = refusal(error)
        findings.found(AccountCheck("AWS Lambda answers in this region", False, why.words, why.fix))
        return None
    at_once = int(limit["ConcurrentExecutions"])
    free = int(limit.get("UnreservedConcurrentExecutions", at_once))
    words = ""
    if at_once < _FEW:
        words = "New accounts have a low limit. Ask for more, which is free: Service Quotas, AWS Lambda."
    findings.quotas.append(Quota("Functions at once", at_once, "functions", at_once - free, words))
    return True


# Rights


class _Simulation:
    """AWS's own simulation of the policies, requested once for each kind of resource."""

    def __init__(self, iam: Any, scope: AwsScope) -> None:
        self._iam, self._scope = iam, scope
        self._decisions: dict[str, Mapping[str, Any]] = {}
        self.refused = ""
        """Why nothing can be simulated; empty if it can."""
        try:
            for on in dict.fromkeys(permission.on for permission in AWS):
                self._simulate([permission.action for permission in AWS if permission.on == on], on)
            self._simulate(BEYOND, "account")
        except Exception as error:
            self.refused = refusal(error).words
            self._decisions.clear()

    def _simulate(self, actions: Iterable[str], on: Target) -> None:
        context = []
        if on == "actor_role":
            service = {"ContextKeyName": "iam:PassedToService", "ContextKeyType": "string"}
            context = [{**service, "ContextKeyValues": ["lambda.amazonaws.com"]}]
        pages = self._iam.get_paginator("simulate_principal_policy").paginate(
            PolicySourceArn=self._scope.own_arn,
            ActionNames=list(actions),
            ResourceArns=[self._scope.sample(on)],
            ContextEntries=context,
        )
        for page in pages:
            for result in page["EvaluationResults"]:
                self._decisions[result["EvalActionName"]] = result

    def allows(self, action: str) -> bool | None:
        decision = self._decisions.get(action)
        return None if decision is None else decision["EvalDecision"] == "allowed"

    def why_not(self, action: str) -> tuple[str, str]:
        """Return the reason and the fix for an action that is not allowed."""
        decision = self._decisions.get(action)
        if decision is None or decision["EvalDecision"] == "allowed":
            return "AWS refused it.", ""
        if not decision.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True):
            return ORGANISATION_FORBIDS
        if not decision.get("PermissionsBoundaryDecisionDetail", {}).get(
            "AllowedByPermissionsBoundary", True
        ):
            return BOUNDARY_FORBIDS
        if decision["EvalDecision"] == "explicitDeny":
            return POLICY_DENIES
        return "No policy allows it.", ""


def _row(
    permission: Permission, scope: AwsScope, known: Mapping[str, bool | None], simulation: _Simulation
) -> AccountCheck:
    action = permission.action
    without = f"Needed to {permission.needed_to}."
    add = f"Add {action} on {scope.arn(permission.on)} to the policy, or copy the whole policy again."
    tried = known.get(action)  # a real attempt counts for more than AWS's simulation
    ok = simulation.allows(action) if tried is None else tried
    if action == _SIMULATE and simulation.refused:
        return AccountCheck(action, False, f"{without} {simulation.refused}", add, optional=True)
    if ok is None:
        words = f"{without} Only its first use will show whether it is allowed."
        return AccountCheck(action, None, words, "", permission.optional)
    if ok:
        return AccountCheck(action, True, without, "", permission.optional)
    words, fix = simulation.why_not(action)
    return AccountCheck(action, False, f"{without} {words}", fix or add, permission.optional)


def _narrow(simulation: _Simulation) -> AccountCheck:
    name = NO_MORE_RIGHTS
    beyond = [action for action in BEYOND if simulation.allows(action)]
    if not beyond:
        return AccountCheck(
            name, True, "They have none of the rights that were checked as unneeded.", optional=True
        )
    return AccountCheck(
        name,
        False,
        f"These credentials may also {', '.join(beyond)}, which Starling never needs.",
        "Remove every right that is not in the policy shown here: rights that do not exist cannot be stolen.",
        optional=True,
    )


# What was set up

_SET_UP_AGAIN = "Set the account up again. If you did not delete it, see who else can change this account."


def _function_there(functions: Any, scope: AwsScope, memory_mb: int) -> AccountCheck:
    """Return whether the function of this size is there and may be called."""
    name = function_name(scope.prefix, memory_mb)
    row = partial(AccountCheck, f"Function {name}", of_set_up=True)
    try:
        there = functions.get_function_configuration(FunctionName=name)
    except Exception as error:
        if code_of(error) in ABSENT:
            words = (
                f"It was set up and is not in the account any more. Jobs with {memory_mb:,} MB would fail."
            )
            return row(False, words, _SET_UP_AGAIN)
        return row(None, f"This could not be checked: {refusal(error).words}")
    if there.get("State") == "Failed":
        return row(False, f"AWS cannot run it: {there.get('StateReasonCode', 'no reason')}.", _SET_UP_AGAIN)
    return row(True, f"It is there, with {there['MemorySize']:,} MB.")


def _bucket_there(s3: Any, name: str) -> AccountCheck:
    row = partial(AccountCheck, f"Bucket {name}", optional=True, of_set_up=True)
    try:
        s3.head_bucket(Bucket=name)
    except Exception as error:
        if code_of(error) in ABSENT:
            words = "It was set up and is not there any more. Jobs whose networks need it would fail."
            return row(False, words, _SET_UP_AGAIN)
        return row(None, f"This could not be checked: {refusal(error).words}")
    return row(True, "It is there.")


def _probes(
    make: ClientMaker, credentials: Mapping[str, str] | None, scope: AwsScope
) -> dict[str, bool | None]:
    """Try actions that change nothing: on resources that do not exist, or as a dry run."""
    functions, logs = make("lambda", credentials), make("logs", credentials)
    tags = make("resourcegroupstaggingapi", credentials)
    function = f"{scope.prefix}-check"
    address = scope.sample("function")
    return {
        "lambda:GetFunction": _allowed(functions.get_function, FunctionName=function),
        "lambda:GetFunctionConfiguration": _allowed(
            functions.get_function_configuration, FunctionName=function
        ),
        "lambda:ListTags": _allowed(functions.list_tags, Resource=address),
        "lambda:InvokeFunction": _allowed(functions.invoke, FunctionName=function, InvocationType="DryRun"),
        "tag:GetResources": _allowed(tags.get_resources, ResourcesPerPage=1),
        "logs:FilterLogEvents": _allowed(
            logs.filter_log_events, logGroupName=f"/aws/lambda/{function}", limit=1
        ),
    }


def _allowed(call: Any, **arguments: Any) -> bool | None:
    try:
        call(**arguments)
    except Exception as error:
        return True if code_of(error) in ABSENT else False if is_denied(error) else None
    return True
