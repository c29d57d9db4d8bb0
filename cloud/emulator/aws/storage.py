"""S3, as far as weights need it: buckets with a lifecycle, and their objects."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from xml.sax.saxutils import escape

from cloud.emulator.aws.account import Account, Principal
from cloud.emulator.aws.errors import AwsError
from cloud.emulator.http import HttpRequest, HttpResponse


@dataclass(frozen=True)
class StoredObject:
    data: bytes
    etag: str
    at_unix_s: float


_DAY_S = 86_400
_DAYS = re.compile(rb"<Expiration>.*?<Days>(\d+)</Days>.*?</Expiration>", re.DOTALL)
_TAG = re.compile(r"<Key>(.*?)</Key>\s*<Value>(.*?)</Value>", re.DOTALL)


class Storage:
    """Buckets by path (`/bucket/key`). A request first deletes objects that are older than the lifecycle allows."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.buckets: dict[str, dict[str, StoredObject]] = {}
        self.expiry_days: dict[str, int] = {}
        self.tags: dict[str, dict[str, str]] = {}
        self.reads = 0

    def add_bucket(self, name: str) -> None:
        self.buckets.setdefault(name, {})

    def handle(self, request: HttpRequest, caller: Principal) -> HttpResponse:
        bucket, *rest = request.parts
        key = "/".join(rest)
        if request.method == "PUT" and not key:
            return self._change(request, caller, bucket)
        if not key:
            # Without the right to list, a caller does not learn whether the bucket exists.
            action = "s3:DeleteBucket" if request.method == "DELETE" else "s3:ListBucket"
            self._account.require(caller, "s3", action, f"arn:aws:s3:::{bucket}")
        if bucket not in self.buckets:
            raise AwsError(404, "NoSuchBucket", "The specified bucket does not exist")
        self._expire(bucket)
        objects = self.buckets[bucket]
        if not key:
            return self._bucket(request, bucket)
        action = {"PUT": "s3:PutObject", "DELETE": "s3:DeleteObject"}.get(request.method, "s3:GetObject")
        self._account.require(caller, "s3", action, f"arn:aws:s3:::{bucket}/{key}")
        match request.method:
            case "PUT":
                etag = f'"{hashlib.md5(request.body, usedforsecurity=False).hexdigest()}"'
                objects[key] = StoredObject(request.body, etag, time.time())
                return HttpResponse(200, headers={"ETag": etag})
            case "DELETE":
                objects.pop(key, None)
                return HttpResponse(204)
            case "GET" | "HEAD" if key in objects:
                self.reads += 1
                found = objects[key]
                return HttpResponse(
                    200, found.data, {"ETag": found.etag, "Content-Type": "binary/octet-stream"}
                )
            case "GET" | "HEAD":
                raise AwsError(404, "NoSuchKey", "The specified key does not exist.")
            case _:
                raise AwsError(405, "MethodNotAllowed", "The specified method is not allowed.")

    def _bucket(self, request: HttpRequest, bucket: str) -> HttpResponse:
        """Answer whether it exists, list it, or delete it."""
        if request.method == "DELETE":
            if self.buckets[bucket]:
                raise AwsError(409, "BucketNotEmpty", "The bucket you tried to delete is not empty")
            for table in (self.buckets, self.expiry_days, self.tags):
                table.pop(bucket, None)
            return HttpResponse(204)
        if request.method != "GET":
            return HttpResponse(200)
        prefix = request.query.get("prefix", "")
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(one.data)}</Size>"
            f"<LastModified>{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(one.at_unix_s))}</LastModified></Contents>"
            for key, one in sorted(self.buckets[bucket].items())
            if key.startswith(prefix)
        )
        body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
        return HttpResponse(200, body.encode(), {"Content-Type": "application/xml"})

    def _change(self, request: HttpRequest, caller: Principal, bucket: str) -> HttpResponse:
        """Create the bucket, or set its lifecycle or its tags."""
        what = next((one for one in ("lifecycle", "tagging") if one in request.query), "")
        actions = {
            "": "CreateBucket",
            "lifecycle": "PutLifecycleConfiguration",
            "tagging": "PutBucketTagging",
        }
        self._account.require(caller, "s3", f"s3:{actions[what]}", f"arn:aws:s3:::{bucket}")
        if not what:
            self.add_bucket(bucket)
            return HttpResponse(200, headers={"Location": f"/{bucket}"})
        if bucket not in self.buckets:
            raise AwsError(404, "NoSuchBucket", "The specified bucket does not exist")
        if what == "lifecycle":
            days = _DAYS.search(request.body)
            if days is None:
                raise AwsError(400, "MalformedXML", "The XML you provided was not well-formed")
            self.expiry_days[bucket] = int(days[1])
        else:
            self.tags[bucket] = dict(_TAG.findall(request.body.decode()))
        return HttpResponse(200)

    def _expire(self, bucket: str) -> None:
        days = self.expiry_days.get(bucket)
        if days is not None:
            oldest = time.time() - days * _DAY_S
            for key in [key for key, one in self.buckets[bucket].items() if one.at_unix_s < oldest]:
                del self.buckets[bucket][key]
