"""The card of a model: what it predicts and from what, how it was learned, how good it is, what it cost, how to use it.

It rounds nothing up, and says what is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from training.artifacts.markdown import literal
from training.data.manifest import Manifest
from training.statistics.few_seeds import Interval
from training.supervised.models.metrics import Coefficient, Metrics, majority_accuracy, majority_loss
from training.supervised.models.model import Model, Parameters, parameter_count

MODEL, CARD, SCRIPT = "model.onnx", "README.md", "predict.py"


@dataclass(frozen=True)
class TrainedModel:
    """A model with what is known of its training. `method` is how it was learned, in words; `cost` an amount in words,
    `simulated` None where the platform is unknown.
    """

    name: str
    model: Model
    parameters: Parameters
    manifest: Manifest
    version: int
    method: str
    seed: int
    samples: int
    cost: str
    simulated: bool | None
    metrics: Metrics | None = None
    coefficients: Sequence[Coefficient] = ()


def model_card(trained: TrainedModel, sha256: str) -> str:
    """Return the card as Markdown. `sha256` is the exported model's."""
    manifest = trained.manifest
    rows = [
        ("Predicts", f"{literal(manifest.target)}: {_listed(manifest.classes)}"),
        ("From", _features(manifest)),
        ("Model", f"{trained.model.title}, {parameter_count(trained.parameters):,} parameters"),
        ("Learned by", trained.method),
        ("Version", f"{trained.version:,}"),
        ("Trained on", f"{trained.samples:,} samples of {manifest.rows:,} rows"),
        ("Training seed", str(trained.seed)),
        ("Data", f"{literal(manifest.name)}: {literal(manifest.source) or 'source unknown'}"),
        ("Data's hash", manifest.hash),
        ("Cost of the training", _cost(trained)),
        ("Exported with", f"numpy {version('numpy')}, onnx {version('onnx')}"),
        (f"SHA-256 of {MODEL}", sha256),
    ]
    table = "\n".join(f"| {what} | {fact} |" for what, fact in rows)
    return f"""# {literal(trained.name)}

A model trained with Starling, as an ONNX model that needs nothing of Starling to run.

| | |
|---|---|
{table}

## How good it is

{_quality(trained)}
{_coefficients(trained.coefficients)}
## How to use it

    pip install onnxruntime numpy
    python {SCRIPT} FILE

prints a line for each row of FILE: the likeliest class, then the probability of each class. The script says what
FILE must be, and refuses a model with another hash.
{_columns(manifest)}"""


def _features(manifest: Manifest) -> str:
    if manifest.picture is not None:
        return f"grey pictures of {manifest.picture[0]} × {manifest.picture[1]}"
    if manifest.kind == "dense":
        return f"{manifest.width:,} numbers, standardised inside the model"
    return f"{len(manifest.columns):,} columns, hashed into {manifest.width:,} places"


def _cost(trained: TrainedModel) -> str:
    if trained.simulated:
        return f"{trained.cost}, **simulated**: priced by a model of a cloud, no one was billed"
    if trained.simulated is None:
        return f"{trained.cost}; whether its platform was simulated is not known"
    return trained.cost


def _quality(trained: TrainedModel) -> str:
    metrics, manifest = trained.metrics, trained.manifest
    if metrics is None:
        return "It was not judged on held-out rows, so how good it is is unknown."
    area = "" if metrics.auc is None else f"\n| Area under the ROC curve | {_interval(metrics.auc)} | 0.5 |"
    lines = "\n".join(
        f"| {literal(name)} | {' | '.join(f'{count:,}' for count in counts)} |"
        for name, counts in zip(manifest.classes, metrics.confusion, strict=True)
    )
    names = " | ".join(map(literal, manifest.classes))
    return f"""On {metrics.rows:,} rows that it never learned from, with 95 % intervals over these rows:

| | this model | knowing only how frequent classes are |
|---|---|---|
| Accuracy | {_interval(metrics.accuracy)} | {majority_accuracy(manifest):.4f} |
| Loss (cross-entropy) | {_interval(metrics.loss)} | {majority_loss(manifest):.4f} |{area}

| true class, then predicted | {names} |
|---{"|---" * len(manifest.classes)}|
{lines}

One training run, one seed: other seeds may learn better or worse.
"""


def _coefficients(coefficients: Sequence[Coefficient]) -> str:
    if not coefficients:
        return ""
    lines = "\n".join(
        f"| {literal(f'{one.column}: {one.text}' if one.text else one.column)} | {literal(one.of_class)} |"
        f" {one.weight:+.4f} |"
        for one in coefficients
    )
    return f"""
## Largest coefficients

Of numbers, per standard deviation. A coefficient is no cause.

| column | raises the odds of | coefficient |
|---|---|---|
{lines}

"""


def _columns(manifest: Manifest) -> str:
    if not manifest.columns:
        return ""
    lines = "\n".join(
        f"| {literal(column.name)}{f': {literal(column.category)}' if column.category else ''} | {column.type} |"
        for column in manifest.columns
    )
    return f"\n| column | type |\n|---|---|\n{lines}\n"


def _interval(interval: Interval) -> str:
    return f"{interval.value:.4f} ({interval.low:.4f} to {interval.high:.4f})"


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(map(literal, names[:most]))
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown
