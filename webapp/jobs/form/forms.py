"""The job form, generated from `JobSpec`: a new field or a new member of a union appears by itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from cloud.platforms.options import CLOUD_OF
from cloud.platforms.ray import driver as ray_driver
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from training.tasks.kinds import TASKS, declaration_of
from training.tasks.reinforcement import ReinforcementLearning
from webapp.jobs.form import learner_places as places
from webapp.jobs.form.form_tree import (
    FieldGroup,
    Leaf,
    ListChange,
    UnionChoice,
    UnionVariant,
    changes_in,
    mark_changes,
)
from webapp.jobs.form.spec_fields import (
    AnyChoice,
    FieldShape,
    Named,
    NamedChoice,
    as_typed,
    clean_value,
    control,
    describe_model,
    discriminator_of,
    extra,
    is_own,
    shape_of,
    tag_of,
    title_of,
)
from webapp.jobs.form.spec_problems import SpecProblem, problems
from webapp.jobs.form.variant_switch import shared_values, sync_shared_values
from webapp.jobs.spec import JobSpec


@dataclass(frozen=True)
class _Place:
    """The place of a model's field. `path` leads there through the spec, `prefix` through the form's names."""

    name: str
    info: FieldInfo
    shape: FieldShape
    path: tuple[str, ...]
    prefix: tuple[str, ...]

    @property
    def labels(self) -> dict[str, Any]:
        return {"label": title_of(self.name, self.info), "help_text": self.info.description or ""}


class SpecForm(forms.Form):
    """A form for any pydantic model. After `is_valid`, `spec` is the validated model.

    Controls are named by their path ("training.algorithm.clip"). Inside a union the chosen tag is part of the
    name ("training.scaling.ramp.over_rounds"), so the page can hold all members and a redraw loses none. The member
    that `untagged` names for its union has none, as before there were others.
    """

    spec: BaseModel
    understood: BaseModel | None = None
    """The spec once the model accepts it; further checks may still reject it."""

    def __init__(
        self,
        model: type[BaseModel],
        data: Mapping[str, Any] | None = None,
        start: BaseModel | Mapping[str, Any] | None = None,
        further_checks: Callable[[Any], Iterable[SpecProblem]] = lambda spec: (),
        named: Mapping[str, Sequence[Named]] | None = None,
        at_once: Collection[str] = (),
        untagged: Mapping[str, str] | None = None,
    ) -> None:
        """`start` gives the initial values. `further_checks` run once the model accepts the spec. `named`
        gives, by path, the options of a text field. `at_once` names the advanced fields that are shown at
        once."""
        super().__init__(data)
        self._named = named or {}
        self._at_once = at_once
        self._untagged = untagged or {}
        self.model = model
        self.further_checks = further_checks
        self.input_of_path: dict[str, str] = {}
        self._shapes_at: dict[str, list[FieldShape]] = {}
        start_values = start.model_dump() if isinstance(start, BaseModel) else dict(start or {})
        self.tree = self._group(model, (), (), "", start_values, chosen=True)
        for leaf in self.tree.leaves():
            leaf.bound = self[leaf.name]
        self.data = sync_shared_values(self.tree.choices(), self.data)

    # Drawing

    def _group(
        self,
        model: type[BaseModel],
        path: tuple[str, ...],
        prefix: tuple[str, ...],
        title: str,
        values: Mapping[str, Any],
        chosen: bool,
        into: FieldGroup | None = None,
    ) -> FieldGroup:
        group = into or FieldGroup(title, path, model)
        for name, info in model.model_fields.items():
            shape = shape_of(info)
            if shape.constant or extra(info, "follows"):
                continue  # no question, or answered by another one
            value = values[name] if name in values else _default(info)
            place = _Place(name, info, shape, (*path, name), (*prefix, name))
            if shape.variants:
                group.items.append(self._choice(place, value, chosen))
            elif shape.model is not None:
                inner_values = value.model_dump() if isinstance(value, BaseModel) else value or {}
                heading = title_of(name, info)
                inner = self._group(shape.model, place.path, place.prefix, heading, inner_values, chosen)
                inner.description = (shape.model.__dict__.get("__doc__") or "").split("\n\n")[0]
                group.items.append(inner)
            else:
                group.items.append(self._leaf(place, value, chosen))
        return group

    def _leaf(self, place: _Place, value: Any, chosen: bool) -> Leaf:
        info, path = place.info, place.path
        input_name = ".".join(place.prefix)
        named = self._named.get(input_name, self._named.get(".".join(path)))
        if named is None:
            self.fields[input_name] = control(place.shape, place.labels)
        else:
            self.fields[input_name] = NamedChoice(named, **place.labels)
        self.initial[input_name] = value
        if chosen:
            self.input_of_path[".".join(path)] = input_name
        advanced = bool(extra(info, "advanced")) and place.name not in self._at_once
        question = "" if place.prefix == path or is_own(info) else self._question(path, place.shape)
        unit = str(extra(info, "unit") or "")
        return Leaf(input_name, path, info, place.shape, advanced, unit, chosen, question)

    def _question(self, path: tuple[str, ...], shape: FieldShape) -> str:
        """Return a key that fields of two variants share if they have one name and the same type."""
        shapes = self._shapes_at.setdefault(".".join(path), [])
        if shape not in shapes:
            shapes.append(shape)
        return f"{'.'.join(path)} {shapes.index(shape)}"

    def _choice(self, place: _Place, value: Any, chosen: bool) -> UnionChoice:
        shape, path, prefix = place.shape, place.path, place.prefix
        values = value.model_dump() if isinstance(value, BaseModel) else dict(value or {})
        first = next(iter(shape.variants.values()))
        discriminator = discriminator_of(first)
        input_name = ".".join((*prefix, discriminator))
        tags = [(tag, describe_model(member)[0]) for tag, member in shape.variants.items()]
        self.fields[input_name] = AnyChoice(choices=tags, required=False, **place.labels)
        began_with = self.initial[input_name] = values.get(discriminator, tag_of(first))
        selected = str(self.data.get(input_name) or began_with)
        if chosen:
            self.input_of_path[".".join(path)] = input_name
        choice = UnionChoice(Leaf(input_name, path, place.info, shape, False, "", chosen), path)
        for tag, member in shape.variants.items():
            mine = tag == selected
            title, description = describe_model(member)
            variant = UnionVariant(title, path, member, description, of=input_name, tag=tag, selected=mine)
            known = values
            if tag != began_with:
                began = shape.variants.get(began_with)
                known = shared_values(values, began, member) if began else {}
            inside = prefix if self._untagged.get(".".join(prefix)) == tag else (*prefix, tag)
            self._group(member, path, inside, title, known, chosen and mine, into=variant)
            choice.variants.append(variant)
        return choice

    def controls_at(self, path: str) -> list[str]:
        """Return the names of all controls of this path: of a field in several variants, one each."""
        return [leaf.name for leaf in self.tree.leaves() if ".".join(leaf.path) == path]

    # Comparing

    def compare_with(self, start: BaseModel | Mapping[str, Any]) -> None:
        """Give every control its value in a form that starts with `start`."""
        other = SpecForm(self.model, start=start, named=self._named, untagged=self._untagged)
        mark_changes(self.tree, other.tree)

    @property
    def changes(self) -> list[ListChange]:
        """Return the differences from the compared form, for the review."""
        return list(changes_in(self.tree))

    def as_typed(self) -> dict[str, Any]:
        """Return every control's value, also of variants that are not chosen."""
        return {name: as_typed(self[name].value()) for name in self.fields}

    # Reading

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        try:
            spec = self.model.model_validate(self._document(self.tree))
            self.understood = spec
            found = list(self.further_checks(spec))
        except ValidationError as error:
            found = problems(error, self.model)
        for problem in found:
            self.add_error(self._input_for(problem.path), problem.sentence)
        if not found and not self.errors:
            self.spec = spec
        return cleaned

    def _document(self, group: FieldGroup) -> dict[str, Any]:
        """Return the nested document without the variants that are not chosen."""
        document: dict[str, Any] = {}
        for item in group.items:
            name = item.path[-1]
            if isinstance(item, Leaf):
                document[name] = clean_value(item.shape, self.cleaned_data.get(item.name))
            elif isinstance(item, UnionChoice):
                document[name] = self._chosen(item)
            else:
                document[name] = self._document(item)
        return document

    def _chosen(self, choice: UnionChoice) -> dict[str, Any]:
        for variant in choice.variants:
            if variant.selected:
                return {discriminator_of(variant.model): variant.tag, **self._document(variant)}
        return {discriminator_of(choice.variants[0].model): self.data.get(choice.selector.name)}

    def _input_for(self, path: str) -> str | None:
        """Return the control of a problem: its own, or the nearest one above; None for the form as a whole."""
        while path and path not in self.input_of_path:
            path = path.rpartition(".")[0]
        return self.input_of_path.get(path)


def _default(info: FieldInfo) -> Any:
    value = info.get_default(call_default_factory=True)
    return None if value is PydanticUndefined else value


# The job form

_UNTAGGED = {"training": ReinforcementLearning.kind}
"""Forms, drafts and links of reinforcement learning name its fields as when it was the only kind."""
_SUBJECT = "training.environment.id"
_DATA = "training.data"
_SCHEDULER = "training.scaling.scheduler"
_AT_ONCE = (
    *("learner", "learner_sku", "learner_usd_per_hour", "region", "machine_usd_per_hour"),
    *("rounds", "no_progress_evaluations"),
)
"""Advanced fields that are shown at once: where the job learns, its cost, and everything that ends it."""


def job_form(
    data: Mapping[str, Any] | None = None,
    start: JobSpec | Mapping[str, Any] | None = None,
    further_checks: Callable[[JobSpec], Iterable[SpecProblem]] = lambda spec: (),
    connections: Mapping[str, Sequence[Named]] | None = None,
    without_connections: Mapping[str, str] | None = None,
    schedulers: Mapping[str, Sequence[Named]] | None = None,
    without_schedulers: str = "",
    data_sets: Sequence[Named] = (),
) -> SpecForm:
    """Return the job form. `connections` are the project's by platform; the texts replace the select where
    there is none. `schedulers`, by the kind of their scaling policy, and `data_sets` likewise."""
    connections = connections or dict.fromkeys(CLOUD_OF, ())
    named = {
        "platform.profile": _named(profiles, "lambda"),
        "platform.stack": _named(stacks, stacks.OURS),
        "platform.simulated.learner": places.learners(),
        "platform.simulated.learner_sku": places.machines_for_rent(),
        "platform.simulated.region": places.regions(),
        **{f"platform.{kind}.connection": choices for kind, choices in connections.items()},
        **_schedulers_by_control(schedulers or {}),
        **({_DATA: data_sets} if data_sets else {}),
    }
    form = SpecForm(JobSpec, data, start, further_checks, named, _AT_ONCE, _UNTAGGED)
    _name_actors_and_rounds(form)
    for leaf in form.tree.leaves():
        leaf.is_short = is_short(leaf)
        leaf.advanced = leaf.advanced and not leaf.is_short
    for name in form.controls_at(_SUBJECT):
        form.fields[name].widget.attrs["list"] = "suggested-environments"
    if data_sets:  # chosen by their titles: only files and programs need a hash or a name
        for name in form.controls_at(_DATA):
            form[name].help_text = "One of this project, or one that comes with Starling."
    for kind, words in (without_connections or {}).items():
        if not connections.get(kind):
            form[f"platform.{kind}.connection"].help_text = words
    if without_schedulers:
        for name in form.controls_at(_SCHEDULER):
            if not named.get(name):
                form[name].help_text = without_schedulers
    if not ray_driver.installed():
        form["platform.ray.address"].help_text = "Ray is not installed here. It is an extra: make ray-setup."
    return form


def _name_actors_and_rounds(form: SpecForm) -> None:
    """Let scaling policies, which all kinds of training share, speak of actors and rounds in the words of each."""
    for leaf in form.tree.leaves():
        say = declaration_of(_kind_at(leaf.name)).say
        leaf.bound.label, leaf.bound.help_text = say(leaf.bound.label), say(leaf.bound.help_text)
        leaf.unit = say(leaf.unit)
    for choice in form.tree.choices():
        for variant in choice.variants:
            variant.description = declaration_of(_kind_at(variant.of)).say(variant.description)


def _kind_at(name: str) -> str:
    """Return the kind of training that a control belongs to; the usual one for those of no kind."""
    return next((kind for kind in TASKS if name.startswith(f"training.{kind}.")), _UNTAGGED["training"])


def _schedulers_by_control(schedulers: Mapping[str, Sequence[Named]]) -> dict[str, Sequence[Named]]:
    """Return the schedulers of each select of them: one a scaling policy that needs one, in each kind of training."""
    prefixes = ["training" if kind == _UNTAGGED["training"] else f"training.{kind}" for kind in TASKS]
    return {
        f"{prefix}.scaling.{kind}.scheduler": schedulers.get(kind, ())
        for prefix in prefixes
        for kind in ("learned", "siren")
    }


def short_paths(kind: str) -> set[str]:
    """Return the paths of a kind's short form: what a launch has to decide. The limits that end the run come in
    addition (`_ends_the_run`); all else is under More settings."""
    fields = (path for _, path in TASKS[kind].spec_model.reviewed)
    paths = {f"training.{path.removesuffix('.kind')}" for path in fields}
    return {"name", "training", "platform", "budget_usd", *paths}


def is_short(leaf: Leaf) -> bool:
    """Return whether a control is in the short form; of a cloud its connection is, of a scaling policy its most
    actors."""
    path = ".".join(leaf.path)
    if path.startswith("training.scaling."):
        return leaf.path[-1] in _MOST_ACTORS
    kind = _kind_at(leaf.name)
    return path in short_paths(kind) or path == "platform.connection" or _ends_the_run(leaf, path, kind)


def _ends_the_run(leaf: Leaf, path: str, kind: str) -> bool:
    """Return whether a control is a limit that the run may meet first: each that is set, and that of its progress."""
    progress = f"training.{TASKS[kind].spec_model.limit_field}"
    if path not in (progress, *(f"training.{other}" for _, other in _OTHER_LIMITS)):
        return False
    is_set = any(value not in (None, "") for value in (leaf.bound.value(), leaf.bound.initial))
    return is_set or (path == progress and not leaf.advanced)


_OTHER_LIMITS = (("Rounds", "stop.rounds"), ("Minutes", "stop.minutes"))
"""The limits beside that of progress, each a word and its path."""


_MOST_ACTORS = ("actors", "actors_max", "actors_last", "scheduler")


@dataclass(frozen=True)
class Reviewed:
    """A line of the review: a word, and the control whose value it shows.

    If there are several kinds of training, the line belongs to one of them and is `selected` with it. A line that is
    `only_set` is hidden while its control is empty.
    """

    word: str
    control: str
    kind: str = ""
    selected: bool = True
    only_set: bool = False


def reviewed(form: SpecForm) -> dict[str, list[Reviewed]]:
    """Return the review's lines of every kind of training: what is learned, and the limits that end it."""
    lines: dict[str, list[Reviewed]] = {"learned": [], "limits": []}
    chosen = form["training.kind"].value() if "training.kind" in form.fields else ""
    for kind, task in TASKS.items():
        model = task.spec_model
        prefix = "training" if kind == _UNTAGGED["training"] else f"training.{kind}"
        of = (kind, kind == chosen) if chosen else ("", True)
        lines["learned"] += [Reviewed(word, f"{prefix}.{path}", *of) for word, path in model.reviewed]
        limit = Reviewed(model.progress_unit.capitalize(), f"{prefix}.{model.limit_field}", *of)
        lines["limits"].append(limit)
        known = {path for _, path in model.reviewed}
        others = [(word, path) for word, path in _OTHER_LIMITS if path not in known]
        lines["limits"] += [Reviewed(word, f"{prefix}.{path}", *of, only_set=True) for word, path in others]
    return lines


def _named(files: Any, first: str) -> list[Named]:
    """Return the profiles or the stacks, the default first."""
    names = sorted(files.names(), key=lambda name: (name != first, name))
    return [Named(name, files.load(name).title, files.load(name).words) for name in names]
