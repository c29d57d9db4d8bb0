"""Specs as files: a preset, a JSON, TOML or YAML file, with single values set by path.

Every problem becomes a line of a SpecError: one sentence that names the field and what is allowed.
"""

from __future__ import annotations

import tomllib
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel, ValidationError

from webapp.jobs.form.document_languages import Language, language_of, parse
from webapp.jobs.form.presets import preset_document, preset_names
from webapp.jobs.form.spec_problems import SpecProblem, problems
from webapp.jobs.form.variant_switch import switch_variant
from webapp.jobs.spec import JobSpec, Limits

_LARGEST_FILE_BYTES = 1_000_000
_TAG = "kind"
_LONGEST_SHOWN = 200


class SpecError(ValueError):
    """The spec cannot be used. The text is one sentence a line."""

    def __init__(self, faults: Sequence[SpecProblem]) -> None:
        super().__init__("\n".join(problem.sentence for problem in faults))
        self.problems = list(faults)


def add_spec_arguments(parser: ArgumentParser) -> None:
    """Give a command the arguments of `read_spec`: `spec` and `changes`."""
    names = ", ".join(preset_names())
    parser.add_argument("spec", metavar="PRESET|FILE", help=f"{names}, or a JSON, TOML or YAML file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        dest="changes",
        help="change one field, such as training.scaling.actors=64; may be repeated",
    )


def read_spec(preset_or_file: str, changes: Sequence[str], limits: Limits) -> JobSpec:
    """Return the spec of that name or file with `path=value` changes, within the limits. Raises SpecError."""
    document = _document(preset_or_file)
    if changes:
        document = _with_defaults(document)
    # Variants are chosen first, in any order of the changes: the other changes are to their fields.
    for change in sorted(changes, key=lambda change: not _chooses(change)):
        set_value(document, change, JobSpec)
    try:
        spec = JobSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(problems(error, JobSpec)) from None
    if refused := spec.check_limits(limits):
        raise SpecError(refused)
    return spec


def _document(preset_or_file: str) -> dict[str, Any]:
    if preset_or_file in preset_names():
        return preset_document(preset_or_file)
    path = Path(preset_or_file)
    if not _is_file(path):
        names = ", ".join(preset_names())
        raise _wrong(f"{preset_or_file!r} is neither a preset ({names}) nor a file.")
    return _parsed(path)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no file can have this name
        return False


def _with_defaults(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with every default written out, so that a change finds its table."""
    try:
        return JobSpec.model_validate(document).model_dump(mode="json")
    except ValidationError:
        return document  # the changes may correct this


def _parsed(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return _table(file, str(path), "TOML", _LARGEST_FILE_BYTES, f"{_LARGEST_FILE_BYTES:,} bytes")
    except OSError as error:
        raise _wrong(f"{path} cannot be read: {error.strerror}.") from None


def _table(file: BinaryIO, name: str, default: Language, largest_bytes: int, largest: str) -> dict[str, Any]:
    """The table of fields in a file, of which no more than the size limit is read."""
    language = language_of(name, default)
    content = file.read(largest_bytes + 1)
    if len(content) > largest_bytes:
        raise _wrong(f"{name} is larger than {largest}; a spec is a short {language} document.")
    try:
        document = parse(content, language)
    except ValueError as error:
        raise _wrong(f"{name} is not {language}: {error}.") from None
    if not isinstance(document, dict):
        raise _wrong(
            f"{name} must hold one table of fields, such as name, training, platform and budget_usd."
        )
    return document


def set_value(document: dict[str, Any], change: str, model: type[BaseModel]) -> None:
    """Set one value from `path=value`. The model checks later whether the field exists."""
    path, equals, text = change.partition("=")
    if not equals or not path.strip():
        raise _wrong(f"--set takes path=value, such as training.seed=7; {change!r} was given.")
    *tables, name = path.strip().split(".")
    here = document
    for table in tables:
        here = here.setdefault(table, {})
        if not isinstance(here, dict):
            raise _wrong(
                f"{path.strip()} is not a field: {table} is a value, not a table of fields.", path.strip()
            )
    value = _value(text.strip())
    if name == _TAG and here.get(_TAG) != value:
        kept = switch_variant(model, ".".join(tables), here, value)  # as in the form
        here.clear()
        here.update(kept)
    here[name] = value


def _chooses(change: str) -> bool:
    return change.partition("=")[0].strip().endswith(f".{_TAG}")


def _value(text: str) -> Any:
    """Parse a TOML value. Words need no quotes, and `none` means None."""
    if text.lower() in ("none", "null"):
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _wrong(sentence: str, path: str = "") -> SpecError:
    return SpecError([SpecProblem(path, sentence)])


def shorten_values(value: Any) -> Any:
    """Return a spec for display, with long texts such as a scheduler's weights cut."""
    if isinstance(value, dict):
        return {key: shorten_values(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shorten_values(inner) for inner in value]
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN:
        return f"{value[:40]}… ({len(value):,} letters in all)"
    return value


LARGEST_BYTES = 256 * 1024


def read_spec_file(file: BinaryIO, name: str) -> JobSpec:
    """Return the spec in a JSON, TOML or YAML file. SpecError with all its problems."""
    document = _table(file, name, "JSON", LARGEST_BYTES, f"{LARGEST_BYTES // 1024} KB")
    try:
        return JobSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(problems(error, JobSpec)) from None
