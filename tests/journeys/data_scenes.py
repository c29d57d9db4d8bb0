"""Data sets in every state, for looking at pages."""

from __future__ import annotations

import random
from typing import Any

from tests.webapp.data_tables import make_data_set, read, ready
from training.data.readers.choice import Choice
from webapp.datasets.models import DataSet, DataState


def data_sets_in_every_state(project: Any) -> dict[str, DataSet]:
    """Ready, with a target to choose, being read, and not read."""
    return {
        "failed": make_data_set(
            project, name="measurements of March", file_name="march.csv", state=DataState.FAILED, survey=None,
            reason="Row 4,711 has 11 cells, and the first row has 12. Column 12 is where they differ; correct the row.",
        ),
        "reading": make_data_set(
            project, name="clicks", file_name="clicks.csv.gz", byte_count=187_000_000, state=DataState.READING,
            survey=None,
        ),
        "choosing": read(project, _orders(), name="orders.csv"),
        "ready": ready(project, _orders(), name="orders, without a fault.csv",
                       choice=Choice(target="returned", leave_out=("id", "weight"))),
    }  # fmt: skip


def _orders() -> str:
    """A table with numbers, categories, texts, missing values and one cell that is wrong."""
    draw = random.Random(22)
    lines = ["id,price,weight,country,comment,returned"]
    for at in range(400):
        price = "" if at % 23 == 0 else f"{draw.lognormvariate(3, 1):.2f}"
        weight = "heavy" if at == 301 else f"{draw.uniform(0.1, 30):.1f}"
        country = draw.choices(["Austria", "Finland", "Portugal", "NA"], [5, 3, 1, 0.2])[0]
        words = (
            "arrived on time and just as it was described"
            if at % 3
            else "the box was open when it came to me"
        )
        lines.append(
            f"{10_000 + at},{price},{weight},{country},{words},{'yes' if draw.random() < 0.18 else 'no'}"
        )
    return "\n".join(lines) + "\n"
