"""The frames of a job's charts, on its page and on shared ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from django import template
from django.template import Context
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from webapp.jobs.charts.figures import ChartPanel

register = template.Library()


@register.simple_tag(takes_context=True)
def chart(context: Context, name: str, panel: ChartPanel, predicted: str = "") -> str:
    """The frame of a job's chart. Most are the same for all jobs of a kind of training, and are rendered once."""
    if panel.score is None and not panel.sentence:
        return _empty_chart(name, panel)
    shared = cast("dict[str, Any]", context.flatten())
    return render_to_string(
        "jobs/figure.html", {**shared, "name": name, "panel": panel, "predicted": predicted}
    )


@lru_cache(200)
def _empty_chart(name: str, panel: ChartPanel) -> SafeString:
    return render_to_string("jobs/figure.html", {"name": name, "panel": panel})
