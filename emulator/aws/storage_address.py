"""Which bucket and object a request to S3 names, and the region of the host that it was sent to."""

from __future__ import annotations

import re
from dataclasses import dataclass

from emulator.aws.errors import AwsError, as_response
from emulator.http import HttpRequest, HttpResponse

DEFAULT_REGION = "us-east-1"
_HOST = re.compile(
    r"(?:(?P<bucket>.+)\.)?s3(?:\.(?P<region>[a-z0-9-]+))?\.(?P<domain>(?:localhost|amazonaws\.com)(?::\d+)?)"
)


@dataclass(frozen=True)
class StorageAddress:
    """`region` is the host's. The global host of a bucket (`BUCKET.s3.…`) names none: until a new bucket's name is
    known everywhere, which takes up to a day, AWS sends its requests to us-east-1.
    """

    bucket: str
    key: str
    region: str
    domain: str
    is_global: bool

    @staticmethod
    def of(request: HttpRequest, signed_region: str) -> StorageAddress:
        """Read hosts as AWS forms them: with the bucket (`BUCKET.s3.REGION.…`) or with it in the path (`s3.REGION.…`).

        Any other host is the emulator's own, which is in every region: that of the signature.
        """
        host = request.headers.get("host", "").lower()
        named = _HOST.fullmatch(host)
        bucket, *rest = request.parts
        if named is None:
            return StorageAddress(bucket, "/".join(rest), signed_region, host, is_global=False)
        region, domain = named["region"] or DEFAULT_REGION, named["domain"]
        if named["bucket"] is None:
            return StorageAddress(bucket, "/".join(rest), region, domain, is_global=False)
        key, is_global = "/".join(request.parts), named["region"] is None
        return StorageAddress(named["bucket"], key, region, domain, is_global)

    def redirect(self, region: str, target: str) -> HttpResponse:
        """Return the refusal of a request for a bucket that lies in another region than the host's."""
        endpoint = f"{self.bucket}.s3.{region}.{self.domain}"
        status, code = (307, "TemporaryRedirect") if self.is_global else (301, "PermanentRedirect")
        words = "Please send all future requests for this bucket to the endpoint of its region."
        response = as_response("s3", AwsError(status, code, words, Endpoint=endpoint, Bucket=self.bucket))
        response.headers["x-amz-bucket-region"] = region
        if self.is_global:
            response.headers["Location"] = f"http://{endpoint}{target}"
        return response

    def require_signed_for(self, region: str, *, presigned: bool) -> None:
        """Raise AwsError if the request was signed for another region than the host's."""
        if region == self.region:
            return
        wrong = f"the region '{region}' is wrong; expecting '{self.region}'"
        if presigned:
            code, words = "AuthorizationQueryParametersError", "Error parsing the X-Amz-Credential parameter"
        else:
            code, words = "AuthorizationHeaderMalformed", "The authorization header is malformed"
        raise AwsError(400, code, f"{words}; {wrong}", Region=self.region)
