"""Removes everything of a connection from an AWS account in small steps, each of which may be repeated.

What another connection has is kept, of this installation or of another one: `aws_inventory.belongs_to` decides.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from cloud.accounts.connections import AwsClients
from cloud.accounts.provision import aws_bucket
from cloud.accounts.provision.aws_inventory import (
    APP,
    Owner,
    account_of,
    belongs_to,
    described,
    missing,
    others_words,
    tags_of,
)
from cloud.accounts.provision.permissions import SHARED_PREFIX
from cloud.accounts.provision.steps import SetUpStep
from cloud.platforms.aws import functions as aws_functions
from cloud.platforms.aws.functions import LOG_DAYS, TAG, function_name

_ASK_AGAIN_S = 1.0


def remove(
    clients: AwsClients,
    owner: Owner,
    memory_mb: Sequence[int],
    *,
    bucket: bool = False,
    patience_s: float = 15.0,
) -> Iterator[SetUpStep]:
    """Delete whatever `set_up` created for this owner, also of other sizes. Yield each step.

    `bucket`: delete that as well. `patience_s`: how long AWS may still list a deleted function.
    """
    account, step = account_of(clients)
    yield step
    if not account:
        return
    prefix = clients.connection.prefix
    names = {function_name(prefix, size) for size in memory_mb}
    try:
        names |= _tagged(clients, owner)
    except Exception as error:
        yield missing("Looking for what is ours", error)
    removed = [_removed(clients, owner, name, patience_s) for name in sorted(names)]
    yield from removed
    if not removed:
        yield SetUpStep("Functions", "gone", "Nothing of this connection is in the account.")
    if bucket:
        yield aws_bucket.delete(clients, owner.connection)


def remove_sizes(
    clients: AwsClients, owner: Owner, memory_mb: Sequence[int], *, patience_s: float = 15.0
) -> Iterator[SetUpStep]:
    """Delete this owner's functions of these sizes and nothing else."""
    for size in sorted(memory_mb):
        yield _removed(clients, owner, function_name(clients.connection.prefix, size), patience_s)


def _tagged(clients: AwsClients, owner: Owner) -> set[str]:
    """Return the names of functions whose tags name this connection."""
    wanted = [{"Key": TAG, "Values": [APP]}, {"Key": "connection", "Values": [owner.connection]}]
    pages = clients.client("resourcegroupstaggingapi").get_paginator("get_resources")
    arns = [
        str(mapping["ResourceARN"])
        for page in pages.paginate(TagFilters=wanted)
        for mapping in page["ResourceTagMappingList"]
    ]
    return {arn.split(":function:")[1] for arn in arns if ":function:" in arn}


def _removed(clients: AwsClients, owner: Owner, name: str, patience_s: float) -> SetUpStep:
    title = f"Function {name}"
    functions, logs = clients.client("lambda"), clients.client("logs")
    prefix = clients.connection.prefix
    try:
        before = described(functions, name)
        tags = tags_of(functions, before)
        if before is not None and not belongs_to(owner, prefix, tags):
            words = f"{others_words(tags)}, so it is kept. If no one needs it, delete it in AWS."
            return SetUpStep(title, "done", words)
        if before is None and prefix == SHARED_PREFIX:
            words = f"It was gone already. If there is a log, AWS deletes its lines after {LOG_DAYS} days."
            return SetUpStep(title, "gone", words)
        aws_functions.remove(functions, name)
        still_there = before is not None and not _vanished(functions, name, patience_s)
    except Exception as error:
        return missing(title, error)
    if still_there:
        words = "AWS accepted its deletion but still lists it."
        return SetUpStep(title, "missing", words, "Remove again in a minute.")
    try:
        aws_functions.remove_logs(logs, name)
    except Exception as error:
        return missing(f"Log of {name}", error)
    return SetUpStep(
        title, "gone", "Deleted, with its log." if before else "It was gone already; so is its log."
    )


def _vanished(functions: Any, name: str, patience_s: float) -> bool:
    end_s = time.monotonic() + patience_s
    while described(functions, name) is not None:
        if time.monotonic() >= end_s:
            return False
        time.sleep(min(_ASK_AGAIN_S, patience_s))
    return True
