"""Sweeps: one job launched many times with different values of chosen fields, as a group with one limit.

Each run's budget is an equal share of the limit, and a budget over the group holds what they spend in all: raised
budgets and later seeds stay within it as well.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any, Literal

from django import forms
from django.db import transaction
from pydantic import BaseModel, ValidationError

from training.tasks.score import USUAL
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.form.form_prefill import begun_with
from webapp.jobs.form.spec_fields import title_of
from webapp.jobs.form.spec_problems import problems
from webapp.jobs.launch.launch_budget import part_of
from webapp.jobs.models import JobGroup
from webapp.jobs.seed_groups import free_group_name, launch_together, share_budget, with_seed
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import picodollars

MOST_RUNS = 100
_RANGE = re.compile(r"^\s*(-?[\d.]+(?:e-?\d+)?)\s*(?:\.\.|–|to)\s*(-?[\d.]+(?:e-?\d+)?)\s*$", re.IGNORECASE)
_LOGARITHMIC_FROM = 10.0
_USUAL_AXIS = "training.algorithm.learning_rate"
_NOT_SWEPT = ("seed", "schema_version", "kind")


class SweepRefused(ValueError):
    """The sweep cannot be run; the message says what to change."""


def _number(called: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise SweepRefused(f"{called}: “{text}” is no number that a field could have.")
    return number


@dataclass(frozen=True)
class Axis:
    """A field by its path, and its values: a list, or a range. Refusals call it by its title, if one is given."""

    path: str
    values: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    title: str = ""

    @classmethod
    def read(cls, path: str, text: str, title: str = "") -> Axis:
        """From "0.001, 0.0003" or "1e-4 .. 1e-2"."""
        called = title or path
        if match := _RANGE.match(text):
            low, high = _number(called, match[1]), _number(called, match[2])
            if not low < high:
                raise SweepRefused(f"{called}: the first end of “{text.strip()}” must be below the second.")
            return cls(path, (), low, high, title)
        values = tuple(dict.fromkeys(value.strip() for value in text.split(",") if value.strip()))
        if not values:
            raise SweepRefused(
                f"{called}: write values such as 0.001, 0.0003 or a range such as 1e-4 .. 1e-2."
            )
        return cls(path, values, title=title)

    def drawn(self, chance: random.Random, whole: bool) -> str:
        """A random value; from a range that spans a factor of ten or more, evenly over its logarithm."""
        if self.values:
            return chance.choice(self.values)
        if self.low > 0 and self.high / self.low >= _LOGARITHMIC_FROM:
            value = math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = chance.uniform(self.low, self.high)
        return str(round(value)) if whole else f"{value:.3g}"


@dataclass(frozen=True)
class Sweep:
    """`way`: "grid" takes every combination, "random" draws `points` of them. Each point runs with `seeds` seeds."""

    base: JobSpec
    name: str
    axes: tuple[Axis, ...]
    way: Literal["grid", "random"]
    points: int
    seeds: int
    limit_usd: Decimal

    def changes(self) -> list[dict[str, str]]:
        """The points, each as values by path; always the same for the same sweep. Raises SweepRefused."""
        if not self.axes:
            raise SweepRefused("Choose at least one field to vary.")
        if len({axis.path for axis in self.axes}) < len(self.axes):
            raise SweepRefused("Each field may be chosen once.")
        known = fields_of(self.base)
        if strange := [axis.path for axis in self.axes if axis.path not in known]:
            raise SweepRefused(f"{strange[0]} is not a field of this job.")
        if self.way == "grid":
            return self._grid()
        chance = random.Random(0)
        changes: dict[tuple[str, ...], dict[str, str]] = {}
        for _ in range(20 * self.points):  # few values give fewer points than requested
            change = {
                axis.path: axis.drawn(chance, isinstance(known[axis.path].value, int)) for axis in self.axes
            }
            changes.setdefault(tuple(change.values()), change)
            if len(changes) == self.points:
                break
        return list(changes.values())

    def _grid(self) -> list[dict[str, str]]:
        if ranged := [axis.title or axis.path for axis in self.axes if not axis.values]:
            raise SweepRefused(f"{ranged[0]}: a grid needs its values one by one, such as 0.001, 0.0003.")
        if (points := math.prod(len(axis.values) for axis in self.axes)) > MOST_RUNS:
            raise SweepRefused(f"{points:,} points are too many: at most {MOST_RUNS} runs go in one sweep.")
        paths = [axis.path for axis in self.axes]
        return [
            dict(zip(paths, point, strict=True)) for point in product(*(axis.values for axis in self.axes))
        ]

    def specs(self) -> list[JobSpec]:
        """Every run's spec. Raises SweepRefused for a value that does not fit, or for too many runs."""
        points = self.changes()
        runs = len(points) * self.seeds
        if not 1 <= runs <= MOST_RUNS:
            raise SweepRefused(f"{runs} runs are too many: at most {MOST_RUNS} go in one sweep.")
        share = part_of(self.limit_usd, runs)
        if share <= 0:
            raise SweepRefused(f"${self.limit_usd} leaves nothing for each of {runs} runs.")
        first = self.base.training.seed
        return [
            with_seed(self._at(point, share), seed)
            for point in points
            for seed in range(first, first + self.seeds)
        ]

    def words_of(self, point: Mapping[str, str]) -> str:
        """Return a point by its fields' titles: "Learning rate 0.001, Steps a call 64"."""
        known = fields_of(self.base)
        return ", ".join(f"{known[path].own_title} {value}" for path, value in point.items())

    def _at(self, point: Mapping[str, str], share: Decimal) -> JobSpec:
        document = self.base.model_dump(mode="json")
        for path, value in point.items():
            *tables, field = path.split(".")
            here = document
            for table in tables:
                here = here[table]
            here[field] = value
        document |= {
            "name": f"{self.name}: {self.words_of(point)}"[:88],
            "budget_usd": str(share),
            "group": "",
        }
        try:
            return JobSpec.model_validate(document)
        except ValidationError as error:
            raise SweepRefused(problems(error, JobSpec)[0].sentence) from None


@dataclass(frozen=True)
class Field:
    """A value of a spec that may be swept. `title` begins with the titles of what it is part of."""

    path: str
    title: str
    value: Any

    @property
    def own_title(self) -> str:
        return self.title.rpartition(": ")[2]


def fields_of(spec: JobSpec) -> dict[str, Field]:
    """The numbers, words and switches of a spec's training and platform, by path."""
    fields: dict[str, Field] = {}
    _collect(spec.training, "training", "", fields)
    _collect(spec.platform, "platform", "", fields)
    return fields


def _collect(model: BaseModel, path: str, above: str, fields: dict[str, Field]) -> None:
    for name, info in type(model).model_fields.items():
        value, here = getattr(model, name), f"{path}.{name}"
        title = USUAL.say(title_of(name, info))
        if isinstance(value, BaseModel):
            _collect(value, here, title, fields)
        elif isinstance(value, (int, float, str)) and name not in _NOT_SWEPT:
            fields[here] = Field(here, f"{above}: {title}" if above else title, value)


def launch_sweep(
    *, project: Project, user: User, sweep: Sweep, key: str | None = None, clock: Clock = SYSTEM_CLOCK
) -> JobGroup:
    """Launch all runs of the sweep as a group under a budget of its limit; all or none.

    SweepRefused or SpecRefused say why not. The same key gives the same sweep again.
    """
    specs = sweep.specs()
    if key and (known := JobGroup.objects.filter(project=project, jobs__idempotency_key=f"{key}:0").first()):
        known.replayed = True
        return known
    with transaction.atomic():
        name = free_group_name(project, sweep.name)
        group = JobGroup.objects.create(project=project, name=name, created_at=clock.now())
        share_budget(group, "Sweep", picodollars(sweep.limit_usd), user, clock)
        jobs = launch_together(
            project=project,
            user=user,
            specs=[spec.model_copy(update={"group": name}) for spec in specs],
            key=key,
            whole_budget=True,
            clock=clock,
        )
    group.replayed = all(job.replayed for job in jobs)
    return group


def axes_from(rows: Sequence[tuple[str, str]], titles: Mapping[str, str]) -> tuple[Axis, ...]:
    """The axes in a form's rows of (path, values), by the titles of their paths; empty rows are left out."""
    return tuple(Axis.read(path, text, titles.get(path, "")) for path, text in rows if path)


MOST_AXES = 3


def base_of(project: Project, query: Mapping[str, Any]) -> tuple[JobSpec, str]:
    """The job that a sweep varies, and its name in the address: one of the project's jobs (`from`) or a preset."""
    job = project.jobs.filter(pk=query.get("from", "")).first()
    if job is not None:
        return job.parsed_spec(), f"from={job.pk}"
    preset, spec = begun_with(query)
    return spec, f"preset={preset.name}"


class SweepForm(forms.Form):
    """Up to three fields with their values, how they are combined, and the limit of the whole sweep."""

    name = forms.CharField(max_length=60, label="Name")
    way = forms.ChoiceField(
        label="Combined as",
        choices=[("grid", "Grid: every combination"), ("random", "Random: some combinations")],
    )
    points = forms.IntegerField(min_value=1, max_value=MOST_RUNS, label="Random points", initial=10)
    seeds = forms.IntegerField(min_value=1, max_value=20, label="Seeds a point", initial=3)
    limit = forms.DecimalField(
        min_value=0, max_digits=12, decimal_places=6, label="Limit of the whole sweep (USD)"
    )

    def __init__(self, data: Any, *, base: JobSpec) -> None:
        super().__init__(data)
        self.base = base
        self.fields["name"].initial = f"{base.name} sweep"[:60]
        self.fields["limit"].initial = base.budget_usd
        known = fields_of(base).values()
        choices = [("", "–"), *((field.path, f"{field.title}, now {field.value}") for field in known)]
        for at in range(MOST_AXES):
            first = _USUAL_AXIS if at == 0 and any(field.path == _USUAL_AXIS for field in known) else ""
            self.fields[f"path_{at}"] = forms.ChoiceField(
                choices=choices, required=False, label="Field", initial=first
            )
            self.fields[f"values_{at}"] = forms.CharField(required=False, max_length=300, label="Values")

    @property
    def axes(self) -> list[tuple[Any, Any]]:
        """The bound fields of each row: a path and its values."""
        return [(self[f"path_{at}"], self[f"values_{at}"]) for at in range(MOST_AXES)]

    def sweep(self) -> Sweep:
        """The sweep of the valid form. Raises SweepRefused for values that cannot be read."""
        given = self.cleaned_data
        rows = [(given[f"path_{at}"], given[f"values_{at}"]) for at in range(MOST_AXES)]
        return Sweep(
            base=self.base,
            name=given["name"].strip(),
            axes=axes_from(rows, {path: field.title for path, field in fields_of(self.base).items()}),
            way=given["way"],
            points=given["points"],
            seeds=given["seeds"],
            limit_usd=given["limit"],
        )
