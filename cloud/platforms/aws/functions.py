"""The actor function in an account: deployed and removed. Each step may be repeated."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from cloud.actor.bundle import HANDLER, Bundle

TAG = "app"
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
LOG_DAYS = 7


def function_name(prefix: str, memory_mb: int) -> str:
    """Return the function's name. Each memory size has its own, as memory belongs to the function, not to the call."""
    return f"{prefix}-actor-{memory_mb}mb"


def log_group(name: str) -> str:
    return f"/aws/lambda/{name}"


def deploy(
    client: Any,
    name: str,
    bundle: Bundle,
    role_arn: str,
    memory_mb: int,
    *,
    timeout_s: int = 900,
    tags: Mapping[str, str] | None = None,
    log_client: Any = None,
) -> str:
    """Create or update the function and wait until it can be called. Return its ARN."""
    from botocore.exceptions import ClientError

    wanted = {
        "FunctionName": name,
        "Role": role_arn,
        "Runtime": bundle.runtime,
        "Handler": HANDLER,
        "MemorySize": memory_mb,
        "Timeout": timeout_s,
        "Environment": {"Variables": _THREADS},
    }
    all_tags = {TAG: "starling", **(tags or {})}
    try:
        function = client.create_function(**wanted, Code={"ZipFile": bundle.data}, Tags=all_tags)
        client.get_waiter("function_active_v2").wait(FunctionName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceConflictException":
            raise
        function = _update(client, name, bundle, wanted, all_tags)
    if log_client is not None:
        keep_logs(log_client, name)
    return str(function["FunctionArn"])


def _update(
    client: Any, name: str, bundle: Bundle, wanted: dict[str, Any], tags: Mapping[str, str]
) -> dict[str, Any]:
    """Update the code, then the configuration. AWS refuses a change until the one before it is complete."""
    existing: dict[str, Any] = client.get_function_configuration(FunctionName=name)
    if existing["CodeSha256"] != code_sha256(bundle):
        client.update_function_code(FunctionName=name, ZipFile=bundle.data)
        client.get_waiter("function_updated_v2").wait(FunctionName=name)
    named = ("MemorySize", "Timeout", "Runtime", "Handler", "Role")
    if any(existing.get(key) != wanted[key] for key in named):
        client.update_function_configuration(**wanted)
        client.get_waiter("function_updated_v2").wait(FunctionName=name)
    client.tag_resource(Resource=existing["FunctionArn"], Tags=dict(tags))
    return existing


def code_sha256(bundle: Bundle) -> str:
    """Return the bundle's hash as AWS shows it."""
    return base64.b64encode(hashlib.sha256(bundle.data).digest()).decode()


def keep_logs(log_client: Any, name: str) -> bool:
    """Have logs deleted after some days. Return True if there was no log before."""
    from botocore.exceptions import ClientError

    group, fresh = log_group(name), True
    try:
        log_client.create_log_group(logGroupName=group)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
            raise
        fresh = False
    log_client.put_retention_policy(logGroupName=group, retentionInDays=LOG_DAYS)
    return fresh


def remove(client: Any, name: str, log_client: Any = None) -> None:
    """Delete the function and its log, if they exist."""
    _delete(client.delete_function, FunctionName=name)
    if log_client is not None:
        remove_logs(log_client, name)


def remove_logs(log_client: Any, name: str) -> None:
    """Delete the function's log, if it exists."""
    _delete(log_client.delete_log_group, logGroupName=log_group(name))


def _delete(delete: Callable[..., Any], **what: str) -> None:
    from botocore.exceptions import ClientError

    try:
        delete(**what)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
