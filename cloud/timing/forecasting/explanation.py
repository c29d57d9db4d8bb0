"""The assumptions of a forecast as sentences: each number with its range, and what cannot be known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cloud.timing.forecasting.configuration import Configuration, Name
from cloud.timing.numbers.profile import Functions, Pool
from cloud.timing.numbers.quantity import Quantity, quantities
from training.rl.environments.expectations import expectation_of
from training.spec import TrainingSpec
from training.tasks.score import USUAL
from training.tasks.training import Training


@dataclass(frozen=True)
class _Phrase:
    """`title` for tables; `sentence` with {} for the number; the number is shown times `factor` with `unit`. Both name
    actors and rounds by the placeholders of `Declaration.say`.
    """

    title: str
    sentence: str
    unit: str = ""
    factor: float = 1.0


_PHRASES: dict[tuple[str, ...], _Phrase] = {
    ("profile", "actors", "cold_s"): _Phrase(
        "Cold start", "A fresh function starts in {}, imports apart", "s"
    ),
    ("profile", "actors", "cold_sigma"): _Phrase(
        "Spread of cold starts", "Cold starts spread log-normally by {}", "%", 100
    ),
    ("profile", "actors", "cold_cap_s"): _Phrase("Longest cold start", "No cold start takes over {}", "s"),
    ("profile", "actors", "warm_s"): _Phrase("Warm start", "A function that is warm starts in {}", "s"),
    ("profile", "actors", "keep_warm_s"): _Phrase(
        "Kept warm", "A function without calls is kept for {}", "s"
    ),
    ("profile", "actors", "starts_at_once"): _Phrase("Starts at once", "{} functions start in one moment"),
    ("profile", "actors", "starts_per_s"): _Phrase("Further starts", "Then {} start a second"),
    ("profile", "actors", "whole_core_mb"): _Phrase(
        "Memory of a core", "A function has a core for each {}", "MB"
    ),
    ("profile", "actors", "most_cores"): _Phrase("Cores of a function", "A function has at most {} cores"),
    ("profile", "actors", "start_sigma"): _Phrase(
        "Spread of starts", "Starts spread log-normally by {}", "%", 100
    ),
    ("profile", "actors", "hand_over_s"): _Phrase(
        "Hand-over", "{An_actor} takes its next call after {}", "s"
    ),
    ("profile", "actors", "creates_at_once"): _Phrase(
        "{Actors} ordered at once", "{} {actors} are made in one moment"
    ),
    ("profile", "actors", "creates_per_s"): _Phrase("Further {actors}", "Then {} are made a second"),
    ("profile", "actors", "idle_s"): _Phrase(
        "Idle {actors}", "{An_actor} without work is given up after {}", "s"
    ),
    ("profile", "actors", "start_s"): _Phrase("Start of {an_actor}", "{An_actor} starts in {}", "s"),
    ("profile", "actors", "concurrent"): _Phrase("Calls at once", "The account may run {} functions at once"),
    ("profile", "actors", "most_actors"): _Phrase(
        "{Actors} at once", "The account may have {} {actors} at once"
    ),
    ("profile", "core_ratio"): _Phrase(
        "Speed of a core", "A core there is {} times as fast as the one that the software was measured on"
    ),
    ("profile", "network", "round_trip_s"): _Phrase("Round trip", "A call's round trip takes {}", "ms", 1000),
    ("profile", "network", "actor_mbit_per_s"): _Phrase(
        "Line of {an_actor}", "{An_actor}'s line carries {}", "Mbit/s"
    ),
    ("profile", "network", "coordinator_mbit_per_s"): _Phrase(
        "Line of the coordinator", "The line that all calls share carries {}", "Mbit/s"
    ),
    ("profile", "network", "payload_limit_mb"): _Phrase("Size of a call", "A call carries at most {}", "MB"),
    ("profile", "network", "detour_s"): _Phrase("Detour by storage", "A larger call takes {} more", "s"),
    ("profile", "chance", "failure_share"): _Phrase("Failing calls", "{} of all calls fail", "%", 100),
    ("profile", "chance", "straggler_sigma"): _Phrase(
        "Stragglers", "Run times of the same work spread log-normally by {}", "%", 100
    ),
    ("profile", "chance", "late_share"): _Phrase("Late outcomes", "{} of all outcomes come late", "%", 100),
    ("profile", "chance", "late_s"): _Phrase("Lateness", "An outcome that comes late is {} late", "s"),
    ("profile", "learner", "server_start_s"): _Phrase(
        "Start of the learner", "The learner is ready after {}", "s"
    ),
    ("profile", "learner", "function_start_s"): _Phrase(
        "Start of the learner", "The learner's function starts cold in {}", "s"
    ),
    ("profile", "learner", "function_keep_warm_s"): _Phrase(
        "Learner kept warm", "A learner's function without calls is kept for {}", "s"
    ),
    ("profile", "learner", "sharing_mlp"): _Phrase(
        "Learners on one machine", "Each further update on the machine slows all by {}", "%", 100
    ),
    ("profile", "learner", "sharing_cnn"): _Phrase(
        "Learners on one machine", "Each further update on the machine slows all by {}", "%", 100
    ),
    ("stack", "import_s"): _Phrase("Imports", "A fresh {actor} imports its libraries in {}", "s"),
    ("stack", "first_environment_s"): _Phrase(
        "First environment", "A fresh {actor} builds its environment in {}", "s"
    ),
    ("stack", "rebuild_s"): _Phrase(
        "Environment rebuilt", "Every call of a function builds its environment again in {}", "s"
    ),
    ("stack", "call_ms"): _Phrase("Work beside steps", "A call takes {} beside its steps", "ms"),
    ("stack", "step_us"): _Phrase("Bookkeeping a step", "Each step takes {} of bookkeeping", "µs"),
    ("stack", "environment_step_fallback_us"): _Phrase(
        "Step of the environment", "A step of an environment that was not measured takes {}", "µs"
    ),
    ("stack", "further_core_share"): _Phrase(
        "Further cores",
        "Each further core adds {} of the first one's speed to the environment's steps",
        "%",
        100,
    ),
    ("stack", "learning_parallel_share"): _Phrase(
        "Learning in parallel", "{} of what {an_actor} learns is shared out over its cores", "%", 100
    ),
    ("stack", "coordinator_ms"): _Phrase("Coordinator", "The coordinator takes {} for each outcome", "ms"),
    ("stack", "codec_us_per_megabyte"): _Phrase("Packing data", "Packing data takes {} a megabyte", "µs"),
    ("stack", "update", "call_ms"): _Phrase(
        "Work beside minibatches", "An update takes {} beside its minibatches", "ms"
    ),
    ("stack", "update", "gradient_ms"): _Phrase(
        "Work beside a gradient", "A call for a gradient takes {} beside its samples", "ms"
    ),
    ("stack", "update", "apply_ms"): _Phrase(
        "Work beside a step", "Making a version of gradients takes {} beside reading them", "ms"
    ),
    ("stack", "update", "apply_us_per_megabyte"): _Phrase(
        "Joining gradients", "Reading and joining a megabyte of state and gradients takes {}", "µs"
    ),
    ("stack", "update", "us_per_megabyte"): _Phrase(
        "Reading data", "The learner reads a megabyte in {}", "µs"
    ),
    ("stack", "hessian_product_per_gradient"): _Phrase(
        "Hessian product", "A Hessian product takes {} gradients"
    ),
}
_INFERENCE = {
    "fixed_us": _Phrase("Action of the policy", "Choosing an action takes {} beside multiplications", "µs"),
    "per_sample_us": _Phrase("Action of the policy", "Each observation takes the policy {} more", "µs"),
    "us_per_million_macs": _Phrase(
        "Policy's arithmetic", "A million multiplications take the policy {}", "µs"
    ),
}
_LEARNING = {
    "fixed_us": _Phrase("Minibatch", "A minibatch takes the learner {} beside its samples", "ms", 1e-3),
    "per_sample_us": _Phrase(
        "Sample of a minibatch", "A sample takes the learner {} beside multiplications", "µs"
    ),
    "us_per_million_macs": _Phrase(
        "Learner's arithmetic", "A million multiplications take the learner {}", "µs"
    ),
}
_KINDS = {"paper": "from a paper"}
_ALWAYS_SHOWN = (
    ("profile", "actors", "cold_s"),
    ("stack", "import_s"),
    ("profile", "actors", "start_s"),
    ("profile", "actors", "concurrent"),
    ("profile", "actors", "most_actors"),
    ("profile", "core_ratio"),
    ("profile", "chance", "straggler_sigma"),
    ("profile", "chance", "failure_share"),
    ("profile", "network", "round_trip_s"),
    ("profile", "learner", "server_start_s"),
    ("profile", "learner", "function_start_s"),
)


@dataclass(frozen=True)
class ForecastFacts:
    """The subject of the sentences. `unread` names what the scaling policy wanted to read; `actors` is its range, and
    `shrinking` whether that narrows with the rounds.
    """

    training: Training
    configuration: Configuration
    spaces_known: bool
    unread: str
    actors: tuple[int, int]
    shrinking: bool
    influential: tuple[Name, ...]


def relevant(name: Name, training: Training, configuration: Configuration) -> bool:
    """Whether a number can make a difference for this job at all."""
    pictures = isinstance(training, TrainingSpec) and training.network.reads_pictures
    match name:
        case ("stack", "environment_step_us" | "environment_step_fallback_us", *_) if not isinstance(
            training, TrainingSpec
        ):
            return False
        case ("stack", "environment_step_us", stepped):
            return stepped == training.subject
        case ("stack", "environment_step_fallback_us"):
            return training.subject not in configuration.stack.environment_step_us
        case ("stack", "inference", kind, _):
            return kind == ("cnn" if pictures else "mlp")
        case ("stack", "update", "gradient_ms" | "apply_ms" | "apply_us_per_megabyte"):
            return training.loop.gradients is not None
        case ("stack", "update", kind, _):
            return kind == ("gpu_" if configuration.setting.learner_gpu else "") + (
                "cnn" if pictures else "mlp"
            )
        case ("stack", "hessian_product_per_gradient"):
            return False
        case ("stack", "further_core_share"):
            return training.copies_a_call > 1
        case ("stack", "learning_parallel_share"):
            return False
        case ("profile", "actors", "most_cores"):
            functions = configuration.profile.actors
            return (
                isinstance(functions, Functions)
                and configuration.stack.further_core_share is not None
                and training.copies_a_call > 1
                and training.memory_mb > functions.most_cores.low * functions.whole_core_mb.value
            )
        case ("profile", "actors", "most_actors"):
            return (
                not isinstance(configuration.profile.actors, Pool)
                or configuration.profile.actors.units is None
            )
        case ("profile", "learner", field):
            return field.startswith(configuration.setting.learner)
    return True


def title_of(name: Name) -> str:
    """Return a number's name for a table."""
    return _phrase(name).title


def figure_of(name: str, value: float) -> str:
    """Return a number of a cloud or of a stack, by its dotted name there, as text: "start of the learner 88.1 s"."""
    path = tuple(name.split("."))
    of_cloud: Name = ("profile", *path)
    phrase = _phrase(of_cloud if of_cloud in _PHRASES else ("stack", *path))
    unit = f" {phrase.unit}" if phrase.unit else ""
    title = USUAL.say(phrase.title)
    return f"{title[0].lower()}{title[1:]} {_number(value * phrase.factor)}{unit}"


def sentences(facts: ForecastFacts) -> tuple[str, ...]:
    """Return the sentences: what matters most first, then what users often ask about, then what cannot be known."""
    known = {("profile", *path): one for path, one in quantities(facts.configuration.profile).items()}
    known |= {("stack", *path): quantity for path, quantity in quantities(facts.configuration.stack).items()}
    stepped: Name = ("stack", "environment_step_us", facts.training.subject)
    if stepped not in known:
        stepped = ("stack", "environment_step_fallback_us")
    names = dict.fromkeys((*facts.influential, *_ALWAYS_SHOWN, stepped))
    lines = [
        _sentence(name, known[name])
        for name in names
        if name in known
        and relevant(name, facts.training, facts.configuration)
        and _says_something(known[name])
    ]
    return tuple(map(facts.training.declaration.say, (*_unknowable(facts), *lines)))


def _says_something(quantity: Quantity) -> bool:
    return quantity.high > 0 and quantity.value < 1e6


def _sentence(name: Name, quantity: Quantity) -> str:
    phrase = _phrase(name)
    shown = _number(quantity.value * phrase.factor)
    low, high = (_number(end * phrase.factor) for end in (quantity.low, quantity.high))
    unit = f" {phrase.unit}" if phrase.unit else ""
    ranged = quantity.low < quantity.high and quantity.kind != "documented"
    number = f"{shown}{unit}" + (f" ({low}–{high}{unit})" if ranged else "")
    return f"{phrase.sentence.replace('{}', number)}: {_KINDS.get(quantity.kind, quantity.kind)}."


def _phrase(name: Name) -> _Phrase:
    match name:
        case ("episode",):
            return _Phrase("Length of an evaluated episode", "")
        case ("stack", "environment_step_us", stepped):
            return _Phrase("Step of the environment", f"A step of {stepped} takes {{}}", "µs")
        case ("stack", "inference", _, field):
            return _INFERENCE[field]
        case ("stack", "update", _, field):
            return _LEARNING[field]
    return _PHRASES[name]


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _unknowable(facts: ForecastFacts) -> list[str]:
    training, stop = facts.training, facts.training.stop
    lines = []
    if stop.target_score is not None:
        lines.append(
            f"Whether a {training.score.name} of {stop.target_score:g} is reached is unknown: the job may end earlier."
        )
    if stop.no_progress_evaluations is not None:
        lines.append("It also ends earlier if it stops getting better, which cannot be predicted.")
    if facts.unread:
        least, most = facts.actors
        lines.append(
            f"The scaling policy depends on {facts.unread.replace('_', ' ')}, which only training shows:"
            f" any number of {{actors}} from {least:,} to {most:,} is considered possible"
            f"{', and fewer and fewer as its scores decay' if facts.shrinking else ''}."
        )
    if isinstance(training, TrainingSpec):
        lines += _of_trials(training, facts.spaces_known)
    lines += _place(facts)
    return lines


def _of_trials(training: TrainingSpec, spaces_known: bool) -> Iterator[str]:
    yield _trials(training)
    if not spaces_known:
        yield (
            f"Observations and actions of {training.subject} are unknown before it is built; sizes are guessed."
        )
    if getattr(training.algorithm, "target_kl", None) is not None:
        yield "All passes over the data are made; the KL limit may end an update earlier."


def _trials(training: TrainingSpec) -> str:
    expected = expectation_of(training.subject, pictures=training.network.reads_pictures)
    if expected.shortest == expected.longest:
        return f"An evaluated episode has {expected.usual:,} steps: {expected.basis}."
    return (
        f"An evaluated episode has {expected.usual:,} steps on average"
        f" ({expected.shortest:,}–{expected.longest:,}): {expected.basis}."
    )


def _place(facts: ForecastFacts) -> list[str]:
    actors: Any = facts.configuration.profile.actors
    if facts.configuration.profile.region == "here":
        return [
            f"This machine runs {actors.units} at a time, and nothing else keeps it busy.",
            "Costs of your own machine are those that you set; electricity is not counted.",
        ]
    lines = []
    if isinstance(actors, Functions) and facts.training.loop.waits_for_slowest:
        lines.append(
            "Functions stay warm from {round} to {round} unless {a_round} takes longer than they are kept."
        )
    if isinstance(actors, Pool) and actors.units is not None:
        lines.append(
            f"The cluster has {actors.units * actors.actors_per_unit:,} {{actors}} from the start to the end."
        )
    return lines
