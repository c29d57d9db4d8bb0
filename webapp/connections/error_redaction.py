"""Error reports without values that people sent and without local variables."""

from __future__ import annotations

from collections.abc import ItemsView
from typing import Any

from django.http import HttpRequest
from django.views.debug import SafeExceptionReporterFilter

HIDDEN = "(not shown)"


class ValueRedaction(SafeExceptionReporterFilter):
    """Always hides posted values and local variables: debugging pages are copied into tickets too."""

    def is_active(self, request: HttpRequest | None) -> bool:
        return True

    def get_post_parameters(self, request: HttpRequest | None) -> dict[str, Any]:
        return {} if request is None else dict.fromkeys(request.POST, HIDDEN)

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: Any
    ) -> ItemsView[str, Any]:
        return dict.fromkeys(tb_frame.f_locals, HIDDEN).items()
