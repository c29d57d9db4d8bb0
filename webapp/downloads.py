"""Files that people take away: an address that is not understood is refused, as the file would be of something else."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse


def unknown_words(request: HttpRequest, *takes: str) -> str:
    """A sentence about what the address does not take; empty if it takes all that was given."""
    strange = [name for name in request.GET if name not in takes]
    if not strange:
        return ""
    return f"This address does not take {', '.join(strange)}. It takes {', '.join(takes) or 'nothing'}."


def refused(words: str) -> HttpResponse:
    """No file, and why."""
    return HttpResponse(f"{words}\n", content_type="text/plain; charset=utf-8", status=400)
