"""Downloads: an address with unknown parameters is refused, as the file would not be the one that was meant."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse


def unknown_words(request: HttpRequest, *takes: str) -> str:
    """A sentence that names unknown parameters of the address; empty if there are none."""
    strange = [name for name in request.GET if name not in takes]
    if not strange:
        return ""
    return f"This address does not take {', '.join(strange)}. It takes {', '.join(takes) or 'nothing'}."


def refused(words: str) -> HttpResponse:
    """The response that refuses a download, with the reason."""
    return HttpResponse(f"{words}\n", content_type="text/plain; charset=utf-8", status=400)
