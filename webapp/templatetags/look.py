"""How pages show figures, times, money and icons. The browser's twin is static/js/format.js."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path

from django import template
from django.conf import settings
from django.forms import BoundField, CheckboxInput, Select
from django.template.defaultfilters import date as format_date
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from webapp.money.amounts import display_usd

register = template.Library()
UNKNOWN = "–"
_SPRITE = Path(settings.BASE_DIR) / "node_modules" / "bootstrap-icons" / "bootstrap-icons.svg"
_SYMBOL = re.compile(r'<symbol[^>]*viewBox="([^"]+)"[^>]*id="([^"]+)"[^>]*>(.*?)</symbol>', re.DOTALL)
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


@register.filter
def money(picodollars: int | None) -> str:
    """Two digits from one dollar on, three significant ones below."""
    return UNKNOWN if picodollars is None else display_usd(int(picodollars))


@register.filter
def count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


@register.filter
def score(value: float | None) -> str:
    """A return: one decimal under a thousand, none above; a dash where it is not known."""
    if value is None:
        return UNKNOWN
    shown = f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"
    return shown.replace("-", "\u2212")


@register.filter
def duration(seconds: float | None) -> str:
    """8.2 s, 12 min 5 s, 3 h 20 min."""
    if seconds is None:
        return UNKNOWN
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


@register.simple_tag
def ago(moment: datetime | None, style: str = "ago") -> SafeString | str:
    """How long ago, with the exact time on hover. Scripts keep it true ("since": 12 min; "ago": 12 min ago)."""
    if moment is None:
        return UNKNOWN
    text = elapsed((timezone.now() - moment).total_seconds())
    return _told_ago(moment, style, text + (" ago" if style == "ago" and text != "now" else ""))


@lru_cache(10_000)
def _told_ago(moment: datetime, style: str, text: str) -> SafeString:
    exact = format_date(moment.astimezone(timezone.get_current_timezone()), "j M Y, H:i:s") + " UTC"
    return format_html(
        '<time datetime="{}" title="{}" data-elapsed="{}">{}</time>',
        moment.isoformat(),
        exact,
        style,
        text,
    )


def elapsed(seconds: float) -> str:
    if seconds < 1:
        return "now"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


@register.filter
def share(part: int | None, whole: int | None) -> str:
    """A part of a whole in percent for drawing a bar, held between 0 and 100."""
    if not part or not whole:
        return "0"
    return f"{min(100.0, max(0.0, 100 * part / whole)):.2f}"


@register.simple_tag
def control(bound: BoundField, css: str = "") -> SafeString:
    """A form field's control with its look, and told to assistive technology what is wrong with it."""
    kind = bound.field.widget
    look = "form-select" if isinstance(kind, Select) else "form-control"
    if isinstance(kind, CheckboxInput):
        look = "form-check-input"
    # The label says it already; a text that vanishes while typing helps nobody.
    attrs = {"class": f"{look} {css}".strip(), "placeholder": ""}
    described = [f"{bound.auto_id}-hint"] if bound.help_text else []
    if bound.errors:
        attrs["aria-invalid"] = "true"
        described.append(f"{bound.auto_id}-problem")
    if described:
        attrs["aria-describedby"] = " ".join(described)
    return bound.as_widget(attrs=attrs)
