"""Specs as JSON files: read from what somebody hands over, with every fault named by its path."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from pydantic import ValidationError

from webapp.jobs.form.spec_documents import SpecError
from webapp.jobs.form.spec_problems import Problem, problems
from webapp.jobs.spec import JobSpec

LARGEST_BYTES = 256 * 1024


def read_spec_file(file: BinaryIO, name: str) -> JobSpec:
    """The spec in a JSON file, or SpecError with all its faults. Not more than the cap is ever read."""
    content = file.read(LARGEST_BYTES + 1)
    if len(content) > LARGEST_BYTES:
        raise _wrong(f"{name} is larger than {LARGEST_BYTES // 1024} KB; a spec is a short JSON document.")
    try:
        document: Any = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise _wrong(f"{name} is not text in UTF-8; a spec is a JSON document.") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _wrong(f"{name} is not JSON: at {where}, {error.msg[:1].lower()}{error.msg[1:]}.") from None
    except (ValueError, RecursionError):
        raise _wrong(f"{name} is not a JSON document that can be read.") from None
    if not isinstance(document, dict):
        raise _wrong(
            f"{name} must hold one table of fields, such as name, training, platform and budget_usd."
        )
    try:
        return JobSpec.model_validate(document)
    except ValidationError as error:
        raise SpecError(problems(error, JobSpec)) from None


def _wrong(sentence: str) -> SpecError:
    return SpecError([Problem("", sentence)])
