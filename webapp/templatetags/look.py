"""What every template may use: figures as `webapp.formatting` writes them, icons, and controls of forms."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from pathlib import Path

from django import template
from django.conf import settings
from django.forms import BoundField, CheckboxInput, Select
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from training.tasks.score import Declaration
from webapp import formatting
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job
from webapp.jobs.scores import named_score, score_of

register = template.Library()
_SPRITE = Path(settings.BASE_DIR) / "node_modules" / "bootstrap-icons" / "bootstrap-icons.svg"
_SYMBOL = re.compile(r'<symbol[^>]*viewBox="([^"]+)"[^>]*id="([^"]+)"[^>]*>(.*?)</symbol>', re.DOTALL)
_CUT_FROM, _END = 24, 16
"""Names of more letters may be cut or broken, and at most so many letters at their end are kept."""
_FALLBACK = '<circle cx="8" cy="8" r="4"/>'


@cache
def _symbols() -> dict[str, str]:
    """Name -> drawing, from the icon sprite that set-up installed; empty where set-up has not run."""
    if not _SPRITE.exists():
        return {}
    text = _SPRITE.read_text(encoding="utf-8")
    return {name: drawing.strip() for _, name, drawing in _SYMBOL.findall(text)}


@register.simple_tag
@cache
def icon(name: str, css: str = "") -> SafeString:
    """An icon as part of the page: no request, and it takes the colour of the text around it."""
    # Safe: it comes from the sprite that set-up installed, never from people.
    drawing = mark_safe(_symbols().get(name, _FALLBACK))
    return format_html(
        '<svg class="icon {}" viewBox="0 0 16 16" fill="currentColor" aria-hidden="true">{}</svg>',
        css,
        drawing,
    )


register.filter("count", formatting.format_count)
register.filter("named_score", named_score)
register.filter("score", formatting.format_score)
register.filter("duration", formatting.format_duration)
register.filter("file_size", formatting.format_file_size)
register.filter("share", formatting.bar_share)
register.filter("unpaid", formatting.mark_unpaid)


@register.filter
def score_value(job: Job) -> str:
    """A job's score as a number alone; the page says beside it what it is of."""
    return formatting.format_score(score_of(job).value, job.declaration.score.decimals)


@register.filter
def money(picodollars: int | None) -> str:
    return formatting.UNKNOWN if picodollars is None else formatting.display_usd(int(picodollars))


@register.filter
def in_words_of(text: str, declared: Declaration) -> str:
    """A text with the words of a kind of training in place of `{actors}`, `{a_round}` and such."""
    return declared.say(text)


@register.filter
def keep_end(name: str) -> SafeString | str:
    """A name whose end stays readable where it is cut: names of a sweep's points and of seeds differ at their ends."""
    if len(name) <= _CUT_FROM:
        return name
    at = name.find(" ", len(name) - _END)
    at = at if at > 0 else len(name) - _END
    return format_html('<span class="keeps-end"><span>{}</span><span>{}</span></span>', name[:at], name[at:])


@register.filter
def break_after_at(address: str) -> SafeString | str:
    """A long e-mail address that breaks after its @ where it does not fit."""
    name, at, host = address.partition("@")
    return format_html("{}{}<wbr>{}", name, at, host) if len(address) > _CUT_FROM else address


@register.filter
def with_code(text: str) -> SafeString:
    """A text whose parts between backticks are code."""
    parts = enumerate(text.split("`"))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if i % 2 else part,) for i, part in parts)
    )


@register.simple_tag
def ago(moment: datetime | None, style: str = "ago") -> SafeString | str:
    return formatting.elapsed_element(moment, SYSTEM_CLOCK.now(), style)


@register.simple_tag
def control(bound: BoundField, css: str = "") -> SafeString:
    """A form field's control with its look, and with its errors marked for assistive technology."""
    kind = bound.field.widget
    look = "form-select" if isinstance(kind, Select) else "form-control"
    if isinstance(kind, CheckboxInput):
        look = "form-check-input"
    # The label says it already; a text that vanishes while typing helps no one.
    attrs: dict[str, str | bool] = {"class": f"{look} {css}".strip(), "placeholder": ""}
    described = [f"{bound.auto_id}-hint"] if bound.help_text else []
    if bound.errors:
        attrs["aria-invalid"] = "true"
        described.append(f"{bound.auto_id}-problem")
    if described:
        attrs["aria-describedby"] = " ".join(described)
    return bound.as_widget(attrs=attrs)
