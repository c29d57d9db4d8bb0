"""S3, as far as weights and results need it: put, get, head, delete and list; signed in header or address."""

from __future__ import annotations

import hashlib
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


class Storage:
    """Buckets by path (`/bucket/key`). Buckets are made by whoever sets the account up."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.buckets: dict[str, dict[str, StoredObject]] = {}
        self.reads = 0

    def add_bucket(self, name: str) -> None:
        self.buckets.setdefault(name, {})

    def handle(self, request: HttpRequest, caller: Principal) -> HttpResponse:
        bucket, *rest = request.parts
        key = "/".join(rest)
        if bucket not in self.buckets:
            raise AwsError(404, "NoSuchBucket", "The specified bucket does not exist")
        objects = self.buckets[bucket]
        if not key:
            return self._bucket(request, caller, bucket)
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

    def _bucket(self, request: HttpRequest, caller: Principal, bucket: str) -> HttpResponse:
        """Whether it is there, or what is in it."""
        self._account.require(caller, "s3", "s3:ListBucket", f"arn:aws:s3:::{bucket}")
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
