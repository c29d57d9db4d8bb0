"""Tables as people upload them, and the data sets that the worker makes of them."""

from __future__ import annotations

import io
import random
from typing import Any

from training.data.readers.__main__ import answer
from training.data.readers.choice import Choice
from webapp.clock import SYSTEM_CLOCK
from webapp.datasets import reading, services
from webapp.datasets.models import DataSet, DataState

FLOWERS = "length,width,colour,kind\n" + "".join(
    f"{at % 17 / 2},{at % 5},{('red', 'white', 'blue')[at % 3]},{at % 2}\n" for at in range(120)
)


def table_of_numbers(rows: int) -> str:
    """A CSV of three numbers a row and a class that two of them decide nearly always."""
    draw = random.Random(7)
    lines = ["height,weight,age,ill"]
    for _ in range(rows):
        height, weight, age = draw.gauss(170, 10), draw.gauss(70, 12), draw.randrange(90)
        ill = height - weight + draw.gauss(0, 4) < 100
        lines.append(f"{height:.1f},{weight:.1f},{age},{'yes' if ill else 'no'}")
    return "\n".join(lines) + "\n"


def make_data_set(project: Any, **fields: Any) -> DataSet:
    """A row alone, without any file: a table that waits for its target, if nothing else is said."""
    now, user = SYSTEM_CLOCK.now(), project.people.first()
    column = {"type": "number", "rows": 20, "distinct": 2, "values": [["0", 10], ["1", 10]], "whole": True}
    survey = {
        "format": "csv",
        "rows": 20,
        "delimiter": ",",
        "columns": [{**column, "name": name} for name in "xy"],
    }
    known = {
        "name": "Table",
        "file_name": "table.csv",
        "byte_count": 80,
        "state": DataState.CHOOSING,
        "survey": survey,
    }
    return DataSet.objects.create(
        project=project, uploaded_by=user, uploaded_at=now, since=now, **{**known, **fields}
    )


def upload(
    project: Any, content: str | bytes = FLOWERS, name: str = "flowers.csv", **options: Any
) -> DataSet:
    """The table as it waits for the worker."""
    data = content.encode() if isinstance(content, str) else content
    file, user = io.BytesIO(data), options.pop("user", None) or project.people.first()
    return services.accept_file(
        project=project, user=user, file_name=name, file=file, size=len(data), **options
    )


def worker_reads(data_set: DataSet) -> DataSet:
    """What the worker does, in this process: starting another takes longer than all the rest."""
    reading.DataReading(answer).run(data_set.pk)
    return DataSet.objects.filter(pk=data_set.pk).first() or data_set


def read(project: Any, content: str | bytes = FLOWERS, **options: Any) -> DataSet:
    """The table once the worker has read it."""
    return worker_reads(upload(project, content, **options))


def ready(
    project: Any, content: str | bytes = FLOWERS, *, choice: Choice | None = None, **options: Any
) -> DataSet:
    """The data set once the worker has stored its shards."""
    return worker_reads(
        services.choose(data_set=read(project, content, **options), choice=choice or Choice(target="kind"))
    )
