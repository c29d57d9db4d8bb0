"""Machines by SKU: cores, memory and GPUs, and since when a machine cannot be rented any more."""

from __future__ import annotations

import datetime
import difflib
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from cloud.money.billing.price_book import UnknownSku
from cloud.timing.numbers.table_files import TableFileError, read_tables

MACHINES = Path(__file__).resolve().parent / "machines.toml"
_SPOT = ".spot"


class MachineError(TableFileError):
    """The list of machines has a fault; the message begins with `file:line:`."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Machine:
    """One kind of machine. `gone_since` is the first day on which it could not be rented."""

    sku: Annotated[str, Field(min_length=1)]
    cloud: Literal["aws", "azure"]
    vcpu: Annotated[int, Field(gt=0)]
    memory_gb: Annotated[float, Field(gt=0)]
    source: Annotated[str, Field(min_length=3)]
    gpus: Annotated[int, Field(ge=0)] = 0
    gpu: str = ""
    gone_since: datetime.date | None = None
    note: str = ""

    @model_validator(mode="after")
    def names_its_gpu(self) -> Machine:
        if bool(self.gpus) != bool(self.gpu):
            raise ValueError(f"{self.gpus} GPUs of the kind {self.gpu!r}")
        return self


@cache
def load(path: Path = MACHINES) -> dict[str, Machine]:
    """Return all machines by SKU."""
    machines: dict[str, Machine] = {}
    for entry in read_tables(path, {"machine"}, MachineError):
        machine = entry.build(Machine)
        if machine.sku in machines:
            raise MachineError(f"{entry.where}: {machine.sku} is here twice")
        machines[machine.sku] = machine
    return machines


def machine(sku: str) -> Machine:
    """Return the machine of a SKU; one from the spot market is the same machine."""
    known = load()
    row = known.get(sku.removesuffix(_SPOT))
    if row is None:
        near = difflib.get_close_matches(sku, known, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnknownSku(f"there is no machine named {sku!r}{hint}")
    return row
