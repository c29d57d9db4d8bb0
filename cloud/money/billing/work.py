"""The record of one call: its work and its dependencies, without times, prices or data.

From it alone the time and the bill of a run can be computed again under another profile, stack or price book. Records
are stored as JSON that leaves out default values.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from training.calls import KINDS
from training.engine.messages import Call
from training.engine.reports import Usage

Record = dict[str, Any]


class WorkError(ValueError):
    """The input is not a record of work; the message says where and why."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call. `name` is its task: the id without the attempt. `serial` counts calls in the order of submission.

    `after` names the tasks that the call depends on: it is submitted at the moment when the last of them lands.
    `macs` are multiplications of one forward pass of one sample, of the policy for actors and of policy and critic
    for the learner; `decision_macs` those of the network that decided how many actors the round gets, reported with
    the round's update. `most_memory_mb` is what the body used, where that was measured. `copies` of what is
    `stepped` run together in the call. `broken`: its body raised, as it would do anywhere.
    """

    id: str
    name: str
    kind: str
    where: Literal["actor", "learner"]
    attempt: int = 1
    serial: int = 0
    round_no: int = 0
    stepped: str = ""
    steps: int = 0
    inferences: int = 0
    trials: int = 0
    minibatches: int = 0
    samples: int = 0
    macs: int = 0
    pictures: bool = False
    hessian_products: int = 0
    decision_macs: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    memory_mb: int = 0
    most_memory_mb: int = 0
    copies: int = 1
    deadline_s: float = 0.0
    after: tuple[str, ...] = ()
    broken: bool = False
    cancelled: bool = False

    def with_deadline(self, deadline_s: float) -> CallRecord:
        """Return the same work with another deadline; several times as fast as `dataclasses.replace`."""
        values: list[Any] = list(_values(self))
        values[_DEADLINE] = deadline_s
        return CallRecord(*values)


_FIRST_NAMES = {"stepped": "environment", "steps": "env_steps", "trials": "episodes"}
_FIELDS = {_FIRST_NAMES.get(field.name, field.name): field for field in dataclasses.fields(CallRecord)}
"""By the names under which they are stored."""
_values = attrgetter(*(field.name for field in _FIELDS.values()))
_DEADLINE = list(_FIELDS).index("deadline_s")
_SAID_BY_THE_CALL = {"trials", "memory_mb"}
OF_USAGE = [
    field.name
    for field in _FIELDS.values()
    if field.name in Usage.model_fields and field.name not in _SAID_BY_THE_CALL
]


def work_of(
    call: Call, usage: Usage, *, serial: int = 0, broken: bool = False, cancelled: bool = False
) -> CallRecord:
    """Return the record of `call`, whose body did the work in `usage`."""
    kind = KINDS[call.kind]
    requested = kind.trials(call.request)
    return CallRecord(
        id=call.id,
        name=call.name,
        kind=kind.name,
        where=call.where,
        attempt=call.attempt,
        serial=serial,
        round_no=call.round_no,
        stepped=kind.stepped(call.request),
        trials=usage.trials if requested is None else requested,
        memory_mb=call.memory_mb,
        copies=kind.copies(call.request),
        deadline_s=call.deadline_s,
        decision_macs=call.decision_macs,
        after=call.after,
        broken=broken,
        cancelled=cancelled,
        **{name: getattr(usage, name) for name in OF_USAGE},
    )


class WorkWriter:
    """Writes records of one run as JSON objects, in any order. Calls sent at one moment depend on the same tasks.

    Where several have the same long list of dependencies, the first holds it and the others name the first
    (`after_as`).
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, ...], str] = {}

    def record(self, work: CallRecord) -> Record:
        kept: Record = {}
        for name, field in _FIELDS.items():
            value = getattr(work, field.name)
            if value != field.default and name != "after":
                kept[name] = value
        if work.name == work.id.rsplit("-a", 1)[0]:
            del kept["name"]
        if len(work.after) > 1 and (first := self._first.setdefault(work.after, work.id)) != work.id:
            kept["after_as"] = first
        elif work.after:
            kept["after"] = list(work.after)
        return kept


def works_from(
    records: Iterable[Mapping[str, Any]], place: Callable[[int], str] = "record {}".format
) -> list[CallRecord]:
    """Return the records of one run in their order. Raises WorkError, which begins with the `place` of
    the wrong one.
    """
    plain = list(records)
    lists = {record.get("id"): record["after"] for record in plain if "after" in record}
    works = []
    for number, record in enumerate(plain, start=1):
        try:
            works.append(_work(record, lists))
        except WorkError as error:
            raise WorkError(f"{place(number)}: {error}") from None
    return works


def _work(record: Mapping[str, Any], lists: Mapping[Any, Any]) -> CallRecord:
    values = dict(record)
    if "after_as" in values:
        first = values.pop("after_as")
        if first not in lists:
            raise WorkError(f"it waits for the same as {first}, of which there is no record")
        values["after"] = lists[first]
    if not isinstance(values.get("id"), str):
        raise WorkError("it has no id")
    values.setdefault("name", values["id"].rsplit("-a", 1)[0])
    for name, value in values.items():
        _check(name, value)
    for name in ("kind", "where"):
        if name not in values:
            raise WorkError(f"{name} is missing")
    values["after"] = tuple(values.get("after", ()))
    return CallRecord(**{_FIELDS[name].name: value for name, value in values.items()})


def _check(name: str, value: Any) -> None:
    field = _FIELDS.get(name)
    if field is None:
        raise WorkError(f"{name} is unknown")
    if name == "kind":
        right = isinstance(value, str) and value in KINDS
    elif name == "where":
        right = value in ("actor", "learner")
    elif name == "after":
        right = isinstance(value, list) and all(isinstance(element, str) for element in value)
    elif field.type in ("int", "float"):
        number = int if field.type == "int" else (int, float)
        right = isinstance(value, number) and not isinstance(value, bool) and value >= 0
    else:
        right = isinstance(value, bool if field.type == "bool" else str)
    if not right:
        raise WorkError(f"{name} cannot be {json.dumps(value)[:60]}")
