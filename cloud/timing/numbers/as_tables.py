"""The numbers of the simulated clouds as tables for people, generated from the files that the simulation uses.

`python -m cloud.timing.numbers.as_tables FILE` writes them all as Markdown.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.quantity import quantities
from cloud.timing.numbers.stack import Stack

_UNITS = {
    "us_per_million_macs": "µs per million multiplications",
    "us_per_megabyte": "µs/MB",
    "_mbit_per_s": "Mbit/s",
    "_per_s": "1/s",
    "_us": "µs",
    "_ms": "ms",
    "_mb": "MB",
    "_s": "s",
}
_STEPS = "environment_step_us"
_HEAD = """# The numbers of the simulated clouds

Every number that [the simulated cloud](simulated-cloud.md) calculates with. This file is written from those in
`cloud/timing/profiles` and `cloud/timing/stacks` by
`python -m cloud.timing.numbers.as_tables docs/simulated-cloud-numbers.md`. A test fails when they differ.
**Measured**: by us, on a real machine. **Paper**: by a paper or its released code. **Documented**: by the provider.
**Assumed**: not measured; the range says how far it may be off.
"""


@dataclass(frozen=True)
class NumberRow:
    """One number: its name, value, range and source."""

    name: str
    unit: str
    value: str
    span: str
    kind: str
    source: str


def rows(model: Profile | Stack) -> Iterator[NumberRow]:
    """Yield all numbers of a profile or a stack in the order of its fields, each with its name in the file."""
    for path, one in quantities(model).items():
        yield NumberRow(
            name=".".join(f'"{part}"' if _STEPS in path[:at] else part for at, part in enumerate(path)),
            unit=_unit(_STEPS if _STEPS in path else path[-1]),
            value=_shown(one.value),
            span="–" if one.low == one.high else f"{_shown(one.low)} – {_shown(one.high)}",
            kind=one.kind,
            source=one.source,
        )


def _unit(field: str) -> str:
    return next((unit for ending, unit in _UNITS.items() if field.endswith(ending)), "")


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def markdown() -> str:
    """Return all profiles and stacks as Markdown."""
    contents = ["", "| | measured | paper | documented | assumed |", "|---|---:|---:|---:|---:|"]
    parts = []
    for kind, module in (("Cloud", profiles), ("Software", stacks)):
        for name in module.names():
            model = module.load(name)
            kinds = Counter(row.kind for row in rows(model))
            counts = " | ".join(str(kinds[one]) for one in ("measured", "paper", "documented", "assumed"))
            contents.append(f"| {kind} `{name}`: {model.title} | {counts} |")
            parts.append(f"\n## {kind} `{name}`: {model.title}\n\n{model.words}\n\n{_table(model)}")
    return _HEAD + "\n".join(contents) + "\n" + "".join(parts)


def _table(model: Profile | Stack) -> str:
    lines = ["| number | value | range | unit | kind | source |", "|---|---:|---:|---|---|---|"]
    lines += [
        f"| `{row.name}` | {row.value} | {row.span} | {row.unit} | {row.kind} | {_cell(row.source)} |"
        for row in rows(model)
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(markdown(), encoding="utf-8")
