"""S3, as far as weights need it: buckets with a region and a lifecycle, and their objects."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from xml.sax.saxutils import escape

from emulator.aws.account import EmulatedAccount, Principal
from emulator.aws.errors import AwsError
from emulator.aws.storage_address import DEFAULT_REGION, StorageAddress
from emulator.http import HttpRequest, HttpResponse


@dataclass(frozen=True)
class StoredObject:
    data: bytes
    etag: str
    at_unix_s: float


_DAY_S = 86_400
_CHANGES = {"lifecycle": "PutLifecycleConfiguration", "tagging": "PutBucketTagging"}
_DAYS = re.compile(rb"<Expiration>.*?<Days>(\d+)</Days>.*?</Expiration>", re.DOTALL)
_PLACE = re.compile(rb"<LocationConstraint>(.*?)</LocationConstraint>")
_TAG = re.compile(r"<Key>(.*?)</Key>\s*<Value>(.*?)</Value>", re.DOTALL)


class Storage:
    """Buckets by host or path. A request first deletes objects that are older than the lifecycle allows.

    Every name is given once in the account, and its bucket lies in one region.
    """

    def __init__(self, account: EmulatedAccount, region: str) -> None:
        self._account = account
        self._home = region
        self.buckets: dict[str, dict[str, StoredObject]] = {}
        self.regions: dict[str, str] = {}
        self.expiry_days: dict[str, int] = {}
        self.tags: dict[str, dict[str, str]] = {}
        self.reads = 0

    def add_bucket(self, name: str, region: str | None = None) -> None:
        self.buckets.setdefault(name, {})
        self.regions.setdefault(name, region or self._home)

    def handle(self, request: HttpRequest, caller: Principal, signed_region: str) -> HttpResponse:
        address = StorageAddress.of(request, signed_region)
        bucket, key = address.bucket, address.key
        creates = request.method == "PUT" and not key and not _CHANGES.keys() & request.query.keys()
        region = self.regions.get(bucket, address.region)
        if region != address.region and not creates:
            return address.redirect(region, request.target)
        address.require_signed_for(signed_region, presigned="X-Amz-Credential" in request.query)
        if creates:
            return self._create(request, caller, bucket, address.region)
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
                stored = objects[key]
                return HttpResponse(
                    200, stored.data, {"ETag": stored.etag, "Content-Type": "binary/octet-stream"}
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
            for table in (self.buckets, self.regions, self.expiry_days, self.tags):
                table.pop(bucket, None)
            return HttpResponse(204)
        if request.method != "GET":
            return HttpResponse(200, headers={"x-amz-bucket-region": self.regions[bucket]})
        prefix = request.query.get("prefix", "")
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(one.data)}</Size>"
            f"<LastModified>{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(one.at_unix_s))}</LastModified></Contents>"
            for key, one in sorted(self.buckets[bucket].items())
            if key.startswith(prefix)
        )
        body = f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
        return HttpResponse(200, body.encode(), {"Content-Type": "application/xml"})

    def _create(self, request: HttpRequest, caller: Principal, bucket: str, region: str) -> HttpResponse:
        self._account.require(caller, "s3", "s3:CreateBucket", f"arn:aws:s3:::{bucket}")
        found = _PLACE.search(request.body)
        place = found[1].decode() if found else DEFAULT_REGION
        if found and place == DEFAULT_REGION:
            raise AwsError(400, "InvalidLocationConstraint", "The specified location-constraint is not valid")
        if region not in (place, DEFAULT_REGION):
            words = (
                f"The {place if found else 'unspecified'} location constraint is incompatible for the region"
            )
            raise AwsError(
                400,
                "IllegalLocationConstraintException",
                f"{words} specific endpoint this request was sent to.",
            )
        if bucket in self.buckets and (self.regions[bucket], region) != (DEFAULT_REGION, DEFAULT_REGION):
            words = "Your previous request to create the named bucket succeeded and you already own it."
            raise AwsError(409, "BucketAlreadyOwnedByYou", words)
        self.add_bucket(bucket, place)
        return HttpResponse(200, headers={"Location": f"/{bucket}"})

    def _change(self, request: HttpRequest, caller: Principal, bucket: str) -> HttpResponse:
        """Set the bucket's lifecycle or its tags."""
        what = next(change for change in _CHANGES if change in request.query)
        self._account.require(caller, "s3", f"s3:{_CHANGES[what]}", f"arn:aws:s3:::{bucket}")
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
            for key in [key for key, stored in self.buckets[bucket].items() if stored.at_unix_s < oldest]:
                del self.buckets[bucket][key]
