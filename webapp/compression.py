"""Pages and figures are sent compressed: a list of jobs is a ninth of its size then.

What is a file already (a film, a policy, a report) goes out as it is, and so does what carries an ETag: compressed,
the ETag would have to be a weak one, and programs could not say with it what they want to change.
"""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

_COMPRESSED = ("text/html", "application/json", "application/problem+json")


class CompressedPages(GZipMiddleware):
    """Django's, random padding included, for whole answers in words."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        kind = response.get("Content-Type", "").partition(";")[0]
        if response.streaming or kind not in _COMPRESSED or response.has_header("ETag"):
            return response
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed
