"""The search language of the list of jobs: `state:active algorithm:ppo cost>1 "cart pole"`. Text in, terms
out; and the jobs that each term matches.

A term is a word, `key:value` (commas separate alternatives) or `figure>number`; a minus before it negates it.
All terms must match.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from webapp.formatting import ungroup
from webapp.job_states import ACTIVE, Observed
from webapp.jobs.list.columns import COLUMNS
from webapp.jobs.models import JobGroup, Tag
from webapp.jobs.reasons import STOPPED_BY_BUDGET
from webapp.money.amounts import PICODOLLARS_PER_USD

_LOOKUPS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "=": "exact"}
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "="}
_FIELDS = {column.key: column.order for column in COLUMNS if column.number and column.order != "created_at"}
"""The columns with numbers, which may be compared under their own names."""
WORDS = {
    "state": "active, queued, running, paused, budget, succeeded, failed or stopped",
    "algorithm": "such as ppo",
    "environment": "such as CartPole-v1; a part of the name is enough",
    "cloud": "local, simulated, aws_lambda, …",
    "tag": "a tag's name",
    "group": "a group's name",
    "by": "a part of an e-mail address",
    "is": "archived or simulated",
}
"""The keys with text values, and their fields."""
FIGURES = ("cost", "limit", *_FIELDS, "age")
"""The keys with numbers. Cost and limit are in dollars; time and age accept 30s, 5min, 2h, 7d."""
STATES: dict[str, Q] = {
    "active": Q(observed__in=ACTIVE),
    "stopped": Q(observed=Observed.CANCELLED),
    "stopping": Q(observed=Observed.DRAINING),
    **{
        state.value: Q(observed=state)
        for state in Observed
        if state not in (Observed.CANCELLED, Observed.DRAINING)
    },
    "budget": STOPPED_BY_BUDGET,
}
"""The values of `state:`, and the jobs that each matches."""
_UNITS_S = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_OPERATORS = (">=", "<=", ">", "<", "=")
_TOKEN = re.compile(r'-?(?:[^\s"]|"[^"]*")+')
_MOST_LETTERS = 400


@dataclass(frozen=True)
class Term:
    """One condition. `operator` is ":" for words, or one of >=, <=, >, <, = for figures; a plain word has no
    key. Any of several `values` may match."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    number: float = 0.0
    negated: bool = False


class NotUnderstood(ValueError):
    """The search cannot be parsed. The text says which part, and what is accepted."""


def parse(text: str) -> tuple[Term, ...]:
    """Return the terms of a search, in order; none for an empty one. Raises NotUnderstood."""
    if len(text) > _MOST_LETTERS:
        raise NotUnderstood(f"The search has {len(text)} letters; at most {_MOST_LETTERS} are allowed.")
    if text.count('"') % 2:
        raise NotUnderstood('A quotation mark is left open; close it with another ".')
    return tuple(_term(token) for token in _TOKEN.findall(text))


def _term(token: str) -> Term:
    negated = token.startswith("-") and len(token) > 1
    bare = token[1:] if negated else token
    match = re.match(r"([A-Za-z_]+)(>=|<=|>|<|=|:)(.*)$", bare, re.DOTALL)
    if match is None:
        return Term("", ":", (bare.replace('"', ""),), negated=negated)
    key, operator, rest = match[1].lower(), match[2], match[3].replace('"', "")
    if key not in WORDS and key not in FIGURES:
        raise NotUnderstood(_unknown(key, token))
    if not rest:
        raise NotUnderstood(f"“{token}” names nothing. {_expected(key)}")
    if key in FIGURES:
        return _figure(key, operator, rest, negated, token)
    if operator not in (":", "="):
        raise NotUnderstood(f"“{token}”: {key} has no size. {_expected(key)}")
    values = tuple(value.strip() for value in rest.split(",") if value.strip())
    if key in ("state", "is"):
        _require_known(key, values)
        values = tuple(value.lower() for value in values)
    return Term(key, ":", values, negated=negated)


def _figure(key: str, operator: str, rest: str, negated: bool, token: str) -> Term:
    if operator == ":":  # people write cost:>1 as well
        operator = next((candidate for candidate in _OPERATORS if rest.startswith(candidate)), "=")
        rest = rest.removeprefix(operator)
    match = re.fullmatch(r"\$?(-?[\d,]*\.?\d+(?:e-?\d+)?)\s*(s|min|h|d)?", rest.strip(), re.IGNORECASE)
    timed = key in ("time", "age")
    if match is None or (match[2] and not timed):
        raise NotUnderstood(f"“{token}”: “{rest}” is no number. {_expected(key)}")
    try:
        value = float(ungroup(match[1]))
    except ValueError:
        raise NotUnderstood(
            f"“{token}”: commas only separate thousands, such as 2,000. {_expected(key)}"
        ) from None
    number = value * (_UNITS_S[match[2].lower()] if match[2] else 1.0)
    if math.isinf(number):
        raise NotUnderstood(f"“{token}”: “{rest}” is more than any job has. {_expected(key)}")
    return Term(key, operator, (), number, negated)


def _require_known(key: str, values: tuple[str, ...]) -> None:
    known = list(STATES) if key == "state" else ["archived", "simulated"]
    for value in values:
        if value.lower() not in known:
            raise NotUnderstood(f"There is no {key}:{value}.{_meant(value, known)} {_expected(key)}")


def _expected(key: str) -> str:
    if key in ("time", "age"):
        return f"Write for example {key}>2h (s, min, h or d)."
    if key in FIGURES:
        return f"Write for example {key}>1 or {key}<=0.5."
    return f"{key}: takes {WORDS[key]}."


def _unknown(key: str, token: str) -> str:
    known = [*WORDS, *FIGURES]
    listed = ", ".join(known)
    return f"“{token}”: nothing is called {key}.{_meant(key, known)} There are {listed}."


def _meant(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word.lower(), known, 1)
    return f" Did you mean {close[0]}?" if close else ""


# What terms mean


def condition(term: Term, now: datetime) -> Q:
    """Return the jobs that a term matches. Those of `cost` carry it as an annotation."""
    if not term.values:
        return _compare(term, now)
    query = Q()
    for value in term.values:
        query |= _word(term.key, value)
    return query


def _word(key: str, value: str) -> Q:
    match key:
        case "state":
            return STATES[value]
        case "algorithm" | "cloud":
            return Q(**{f"{key}__iexact": value})
        case "environment":
            return Q(subject__icontains=value)
        case "tag":
            return Q(Exists(Tag.objects.filter(jobs=OuterRef("pk"), name__iexact=value)))
        case "group":
            return Q(Exists(JobGroup.objects.filter(jobs=OuterRef("pk"), name__iexact=value)))
        case "by":
            return Q(created_by__email__icontains=value)
        case "is":
            return Q(simulated=True) if value == "simulated" else Q(archived_at__isnull=False)
    return Q(name__icontains=value) | Q(pk=value) | Q(note__icontains=value)


def _compare(term: Term, now: datetime) -> Q:
    if term.key == "age":  # an older job has an earlier time
        moment = now - timedelta(seconds=min(term.number, 1e9))
        return Q(**{f"created_at__{_LOOKUPS[_TURNED[term.operator]]}": moment})
    if term.key in ("cost", "limit"):
        field = "cost" if term.key == "cost" else "account__limit_picodollars"
        number = round(min(max(term.number, -9e6), 9e6) * PICODOLLARS_PER_USD)
        return Q(**{f"{field}__{_LOOKUPS[term.operator]}": number})
    return Q(**{f"{_FIELDS[term.key]}__{_LOOKUPS[term.operator]}": term.number})
