"""A bucket for networks that are too large for a call. Its objects are deleted after a day."""

from __future__ import annotations

from typing import Any

from cloud.accounts.connections import AwsClients
from cloud.accounts.provision.aws_inventory import missing
from cloud.accounts.provision.steps import SetUpStep
from cloud.formatting import plural
from cloud.platforms.aws.error_text import ABSENT, code_of

LIFE_DAYS = 1
"""Runs delete their own networks; this deletes those of runs that died."""
_INSTEAD = "Or set up without a bucket."


def bucket_name(prefix: str, connection_id: str) -> str:
    """Return the bucket's name. Such names are unique worldwide; a connection's id is unique and cannot be guessed."""
    return f"{prefix}-weights-{connection_id.removeprefix('con_')}"


def create(clients: AwsClients, connection_id: str, tags: dict[str, str]) -> SetUpStep:
    """Create the bucket, or bring it up to date."""
    name = bucket_name(clients.connection.prefix, connection_id)
    title = f"Bucket {name}"
    s3 = clients.client("s3")
    try:
        fresh = not _there(s3, name)
        if fresh:
            s3.create_bucket(Bucket=name, **_place(clients.connection.region))
        s3.put_bucket_tagging(
            Bucket=name, Tagging={"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}
        )
        s3.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration=_short_life())
    except Exception as error:
        return missing(title, error, _INSTEAD)
    words = f"For networks that do not fit into a call. AWS deletes its objects after {LIFE_DAYS} day."
    return SetUpStep(title, "made" if fresh else "done", words)


def delete(clients: AwsClients, connection_id: str) -> SetUpStep:
    """Empty the bucket and delete it, if it exists."""
    name = bucket_name(clients.connection.prefix, connection_id)
    title = f"Bucket {name}"
    s3 = clients.client("s3")
    try:
        if not _there(s3, name):
            return SetUpStep(title, "gone", "It was gone already.")
        count = 0
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name):
            for stored in page.get("Contents", ()):
                s3.delete_object(Bucket=name, Key=stored["Key"])
                count += 1
        s3.delete_bucket(Bucket=name)
    except Exception as error:
        if code_of(error) in ABSENT:
            return SetUpStep(title, "gone", "It was gone already.")
        return missing(title, error)
    return SetUpStep(title, "gone", f"Emptied of {plural(count, 'object')} and deleted.")


def _there(s3: Any, name: str) -> bool:
    try:
        s3.head_bucket(Bucket=name)
    except Exception as error:
        if code_of(error) in ABSENT:
            return False
        raise
    return True


def _place(region: str) -> dict[str, Any]:
    """Return the argument that names the region. AWS refuses one that names its default region."""
    return {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}


def _short_life() -> dict[str, Any]:
    rule = {
        "ID": "starling",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "Expiration": {"Days": LIFE_DAYS},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": LIFE_DAYS},
    }
    return {"Rules": [rule]}
