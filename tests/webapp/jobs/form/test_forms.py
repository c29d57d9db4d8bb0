"""The job form is drawn from pydantic models: made-up ones show that nothing about a field is written twice."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from django.http import QueryDict
from django.test import Client
from pydantic import BaseModel, Field

from cloud.timing.forecast import forecast
from tests.factories import make_project, make_spec, make_user
from webapp.jobs.form.form_page import sections
from webapp.jobs.form.form_tree import part_of
from webapp.jobs.form.forms import Reviewed, SpecForm, is_short, job_form, reviewed
from webapp.jobs.form.presets import presets
from webapp.jobs.form.spec_fields import FieldShape, as_typed, clean_value
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import picodollars


class Walk(BaseModel):
    """Walk: one step at a time."""

    kind: Literal["walk"] = "walk"
    pace: float = Field(1.5, gt=0, le=10, title="Pace", json_schema_extra={"unit": "m/s"})


class Fly(BaseModel):
    """Fly: in the air."""

    kind: Literal["fly"] = "fly"
    pace: float = Field(20.0, gt=0, le=100, title="Pace")
    height: int | None = Field(None, ge=1, title="Height", json_schema_extra={"advanced": True})


class Luggage(BaseModel):
    weights: tuple[int, ...] = Field((10, 20), min_length=1, title="Weights")
    fragile: bool = Field(False, title="Fragile")


class Journey(BaseModel):
    version: Literal[1] = 1
    name: str = Field("Home", min_length=1, title="Name")
    fare: Decimal = Field(Decimal("2.50"), gt=0, decimal_places=2, title="Fare")
    colour: Literal["red", "blue"] = Field("red", title="Colour")
    way: Annotated[Walk | Fly, Field(discriminator="kind")] = Field(default_factory=Walk, title="Way")
    luggage: Luggage = Luggage()


def posted(form: SpecForm, **changes: Any) -> Mapping[str, Any]:
    """What a browser would send for the form as drawn, with changes by name."""
    data = QueryDict(mutable=True)
    for name in form.fields:
        value = form[name].value()
        if value is True:
            data[name] = "on"
        elif value not in (False, None):
            data[name] = str(value)
    for name, value in changes.items():
        data[name.replace("__", ".")] = value
    return data


def filled(**changes: Any) -> SpecForm:
    return SpecForm(Journey, posted(SpecForm(Journey), **changes))


def test_a_form_sent_back_as_drawn_is_the_model_it_was_drawn_from() -> None:
    journey = Journey(name="Away", way=Fly(height=3), luggage=Luggage(weights=(1, 2, 3), fragile=True))
    form = SpecForm(Journey, posted(SpecForm(Journey, start=journey)))
    assert form.is_valid(), form.errors
    assert form.spec == journey


def test_every_kind_of_field_has_its_control_title_and_unit() -> None:
    form = SpecForm(Journey)
    assert "version" not in form.fields  # a constant is no question
    assert list(form.fields) == [
        *("name", "fare", "colour", "way.kind", "way.walk.pace", "way.fly.pace", "way.fly.height"),
        *("luggage.weights", "luggage.fragile"),
    ]
    leaves = {leaf.name: leaf for leaf in form.tree.leaves()}
    assert leaves["way.walk.pace"].unit == "m/s"
    assert leaves["way.fly.height"].advanced
    assert form["colour"].field.choices == [("red", "red"), ("blue", "blue")]
    assert form["way.kind"].field.choices == [("walk", "Walk"), ("fly", "Fly")]
    assert form["luggage.weights"].value() == "10, 20"


def test_only_the_chosen_member_of_a_union_is_read() -> None:
    form = filled(way__kind="fly", way__fly__pace="55", way__walk__pace="nonsense")
    assert form.is_valid(), form.errors
    assert form.spec.way == Fly(pace=55)  # type: ignore[attr-defined]


def test_errors_land_on_their_fields_in_the_words_of_the_model() -> None:
    form = filled(way__kind="fly", way__fly__pace="1000", fare="0", luggage__weights="1, x", name="")
    assert not form.is_valid()
    assert set(form.errors) == {"way.fly.pace", "fare", "luggage.weights", "name"}
    assert "at most 100" in form.errors["way.fly.pace"][0] or "and 100" in form.errors["way.fly.pace"][0]
    assert form["way.fly.pace"].value() == "1000"  # what was typed is still there


def test_a_choice_that_is_not_offered_is_refused_on_its_select() -> None:
    assert set(filled(way__kind="swim").errors) == {"way.kind"}
    assert set(filled(colour="green").errors) == {"colour"}


def test_further_checks_speak_on_fields_too() -> None:
    from webapp.jobs.form.spec_problems import SpecProblem

    drawn = posted(SpecForm(Journey))
    form = SpecForm(Journey, drawn, further_checks=lambda spec: [SpecProblem("way.pace", "Too fast today.")])
    assert form.errors == {"way.walk.pace": ["Too fast today."]}
    form = SpecForm(Journey, drawn, further_checks=lambda spec: [SpecProblem("", "Not today.")])
    assert form.non_field_errors() == ["Not today."]


@pytest.mark.parametrize(
    ("kind", "typed", "meant"),
    [
        (int, "100,000", "100000"),
        (int, "1 000", "1000"),
        (int, "1e6", 1_000_000),
        (int, "2.5", "2.5"),
        (float, "3e-4", "3e-4"),
        (float, "0,5", "0,5"),
        (Decimal, "$1,250.50", "1250.50"),
        (str, " x ", "x"),
        (tuple[int, ...], "64, 64", ["64", "64"]),
        (tuple[int, ...], "(8; 16)", ["8", "16"]),
        (bool, True, True),
    ],
)
def test_what_people_type_is_understood(kind: Any, typed: Any, meant: Any) -> None:
    assert clean_value(FieldShape(kind), typed) == meant


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        (None, ""),
        (0.0003, "0.0003"),
        (475.0, "475"),
        (100_000, "100,000"),
        ((64, 64), "64, 64"),
        (Decimal("1.00"), "1.00"),
    ],
)
def test_values_are_shown_as_people_type_them(value: Any, typed: str) -> None:
    assert as_typed(value) == typed


# The job form itself


# The flights take seconds to make.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == "siren-flights" else ()) for name in presets()],
)
def test_each_preset_goes_through_the_form_unchanged(name: str) -> None:
    spec = presets()[name].spec
    form = job_form(posted(job_form(start=spec)))
    assert form.is_valid(), form.errors
    assert form.spec == spec


def test_sections_hold_every_field_once() -> None:
    form = job_form(start=make_spec())
    by_key = {part["key"]: [leaf.name for leaf in part["group"].leaves()] for part in sections(form.tree)}
    short = [leaf.name for leaf in part_of(form.tree, is_short).leaves()]
    shown = [*short, *(name for names in by_key.values() for name in names)]
    assert sorted(shown) == sorted(form.fields)
    assert "at_line" in by_key["how-much"]
    assert "training.stop.target_return" in by_key["how-much"]
    assert "training.scaling.kind" in by_key["scaling"]
    assert "platform.simulated.profile" in by_key["where"]


def test_the_short_form_asks_what_a_launch_decides() -> None:
    form = job_form(start=make_spec())
    short = list(part_of(form.tree, is_short).leaves())
    names = [leaf.name for leaf in short if leaf.is_chosen]
    assert names == [
        "name",
        "training.kind",
        "training.environment.id",
        "training.algorithm.kind",
        "training.scaling.fixed.actors",
        "training.stop.env_steps",
        "platform.kind",
        "budget_usd",
    ]
    assert "platform.aws_lambda.connection" in [leaf.name for leaf in short]
    for scaling in (one for one in form.tree.choices() if one.path == ("training", "scaling")):
        for variant in scaling.variants:
            short_ones = [leaf.path[-1] for leaf in variant.leaves() if is_short(leaf)]
            assert len(short_ones) == 1, (
                f"{variant.tag}: the short form asks for {short_ones}; one field must have a name of _MOST_ACTORS"
            )


def shown_at_once(spec: JobSpec) -> set[str]:
    """The stop rules that the short form shows, as it is drawn."""
    form = job_form(start=spec)
    short = part_of(form.tree, is_short).leaves()
    return {
        leaf.path[-1]
        for leaf in short
        if leaf.is_chosen and leaf.path[:2] == ("training", "stop") and not leaf.advanced
    }


@pytest.mark.parametrize("name", presets())
def test_the_short_form_of_each_preset_shows_the_rule_that_ends_the_job_first(name: str) -> None:
    """Its most actors in every round show whether rounds end the job before its steps do."""
    spec = presets()[name].spec
    training, shown = spec.training, shown_at_once(spec)
    stop = training.stop
    assert stop.minutes is None
    progress = training.limit_field.rpartition(".")[2]
    most = (stop.rounds or 0) * training.scaling.largest * training.progress_a_call
    rounds_first = stop.rounds is not None and (stop.progress_limit is None or most <= stop.progress_limit)
    assert ("rounds" if rounds_first else progress) in shown


def test_the_rounds_of_nitro_end_it_and_are_shown() -> None:
    spec = presets()["hopper-nitro"].spec
    found = forecast(spec.training, spec.platform, picodollars(spec.budget_usd))
    assert found.ends_by == "rounds"
    assert shown_at_once(spec) == {"rounds", "env_steps"}


def test_every_limit_that_is_set_is_in_the_short_form() -> None:
    assert shown_at_once(make_spec(training__stop__minutes=5)) == {"env_steps", "minutes"}
    rows = {"training__stop__rounds": None, "training__stop__samples": 10_000}
    assert shown_at_once(make_spec("siren-digits", **rows)) == {"samples", "rounds"}
    assert shown_at_once(make_spec("siren-digits")) == {"rounds"}, "an empty limit waits under More settings"


@pytest.mark.parametrize(
    "kind", ["boosting", "noise_scale", "doubling", "chance", "reward_ratio", "scale_in"]
)
def test_of_a_scaling_policy_the_most_actors_of_the_short_form_are_enough(kind: str) -> None:
    changes = {"training__scaling__kind": kind, f"training__scaling__{kind}__actors_max": "4"}
    form = job_form(posted(job_form(start=make_spec()), **changes))
    assert form.is_valid(), form.errors
    assert form.spec is not None
    assert form.spec.training.scaling.largest == 4


def test_bad_input_of_a_job_names_field_and_what_is_allowed() -> None:
    data = posted(
        job_form(start=make_spec()),
        budget_usd="0",
        training__environment__id="CartPoll-v1",
        training__scaling__fixed__actors="9000",
    )
    form = job_form(data)
    assert set(form.errors) == {"budget_usd", "training.environment.id", "training.scaling.fixed.actors"}
    assert form.errors["training.environment.id"][0].endswith("CartPole-v1?"), "a question needs no full stop"
    assert "4,096" in form.errors["training.scaling.fixed.actors"][0]


def test_the_models_fields_all_have_titles() -> None:
    for leaf in job_form(start=JobSpec()).tree.leaves():
        assert leaf.info.title or leaf.name.endswith(".kind"), leaf.name


def test_the_review_names_what_is_learned_and_the_limits_that_end_it() -> None:
    lines = reviewed(job_form(start=make_spec()))
    assert lines == {
        "learned": [
            Reviewed("Environment", "training.environment.id", "reinforcement", True),
            Reviewed("Algorithm", "training.algorithm.kind", "reinforcement", True),
            Reviewed("Data", "training.supervised.data", "supervised", False),
            Reviewed("Model", "training.supervised.model.kind", "supervised", False),
            Reviewed("Epochs", "training.supervised.stop.rounds", "supervised", False),
        ],
        "limits": [
            Reviewed("Steps", "training.stop.env_steps", "reinforcement", True),
            Reviewed("Rounds", "training.stop.rounds", "reinforcement", True, only_set=True),
            Reviewed("Minutes", "training.stop.minutes", "reinforcement", True, only_set=True),
            Reviewed("Samples", "training.supervised.stop.samples", "supervised", False),
            Reviewed("Minutes", "training.supervised.stop.minutes", "supervised", False, only_set=True),
        ],
    }


def test_another_kind_of_training_is_one_change_of_the_form() -> None:
    form = job_form({**job_form(start=make_spec()).as_typed(), "training.kind": "supervised"})
    form.compare_with(make_spec())
    (change,) = form.changes
    assert change.words.startswith("Training: Reinforcement learning → ")
    assert form.is_valid(), form.errors
    assert (form.spec.training.data, form.spec.training.kind) == ("digits", "supervised")


def test_the_memory_of_a_call_is_at_the_field_that_its_kind_declares() -> None:
    form = job_form(start=make_spec())
    assert f"training.{make_spec().training.memory_field}" == "training.rollout.memory_mb"
    assert form.controls_at("training.rollout.memory_mb") == ["training.rollout.memory_mb"]


@pytest.mark.django_db
def test_what_comes_from_a_paper_says_how_it_did_here(client: Client) -> None:
    project = make_project(user := make_user())
    client.force_login(user)
    form = client.get(f"/p/{project.slug}/jobs/new/").content.decode()
    page = client.get("/papers/").content.decode()
    linked = set(re.findall(r'href="/papers/#(\w+)" target="_blank"', form))
    assert linked == {"minionsrl", "nitro", "stellaris", "siren"}
    assert all(f'id="{paper}"' in page for paper in linked)
    # A rule that no paper here is about has no such line.
    (words,) = re.findall(r'<p class="variant-words[^>]*data-variant="noise_scale".*?</p>', form)
    assert "/papers/" not in words
