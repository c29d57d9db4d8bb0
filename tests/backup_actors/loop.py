"""A loop for tests alone: synchronous with a backup actor (Chen et al. 2016), so that no one waits for the slowest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from training.engine.replay import Contribution
from training.loops.loop import Loop
from training.loops.state import (
    EndRound,
    Landing,
    LoopState,
    MakeVersion,
    NothingWorks,
    Sample,
    SendUpdate,
    Step,
)


class BackupState(LoopState):
    """All actors but one make a round; what the last one returns is dropped. `_late` are such calls by slot."""

    keeps_what_lands_late = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._sampling: dict[str, int] = {}
        self._late: dict[str, int] = {}
        self._data: list[Contribution] = []
        self._updating = ""
        self._dropped = 0

    def send(self) -> Iterator[Step]:
        if self._sampling or self._updating:
            return
        for slot in range(self.plan.actors):
            if slot not in self._late.values():
                name = self.name(f"s{slot}-{self.round_no + 1}")
                self._sampling[name] = slot
                yield Sample(name, self.after, slot, self.round_no + 1)

    def land(self, landing: Landing) -> Iterator[Step]:
        self.after = (landing.name,)
        if landing.name == self._updating:
            self._updating = ""
            if not landing.done:
                raise NothingWorks(landing.reason)
            self._made(landing.samples)
            yield MakeVersion(landing.name)
            self._round_ended()
            dropped, self._dropped = self._dropped, 0
            yield EndRound(dropped)
        elif landing.name in self._late:
            del self._late[landing.name]
            self._dropped += landing.done
        else:
            yield from self._land_sample(landing)

    def _land_sample(self, landing: Landing) -> Iterator[Step]:
        del self._sampling[landing.name]
        if landing.done:
            self._data.append(Contribution(landing.payload, self.version, landing.name))
        if len(self._sampling) > 1 or (self._sampling and not self._data):
            return
        if not self._data:
            raise NothingWorks(landing.reason)
        self._late, self._sampling = {**self._late, **self._sampling}, {}
        batch, self._data = tuple(self._data), []
        self._updating = self.name("update")
        yield SendUpdate(self._updating, (*(contribution.name for contribution in batch), *self.after), batch)

    def kept(self) -> dict[str, Any]:
        return {}


class Backup(Loop):
    """Backup actor: the learner does not wait for the slowest actor, whose data is dropped."""

    kind: Literal["backup"] = "backup"
    decides = BackupState
    depends_on_timing: ClassVar[bool] = True
    decided_by_times = "whose data is dropped"

    @property
    def staleness_limit(self) -> int:
        return 0

    @property
    def judges_beside(self) -> bool:
        return True
