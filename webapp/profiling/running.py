"""A memory profile as the worker makes it: functions made, calls measured, functions gone; all told in its row."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any

from django.views.decorators.debug import sensitive_variables

from cloud.aws_lambda import LambdaOptions, LambdaPlatform
from cloud.checks import scrubbed
from cloud.connections import AwsClients
from cloud.executor import LocalExecutor
from cloud.learner_thread import NoLearner
from cloud.ledger import MemoryLedger
from cloud.metering import MeteredPlatform
from cloud.profiling_runs import NoWeights, first_weights, measured
from cloud.provision import aws, aws_removal
from cloud.provision.steps import Step
from cloud.simulated import SimulatedPlatform
from cloud.simulated_options import SimulatedOptions
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.credentials import opening, setting_up
from webapp.credentials.key_ring import KeysUnusable
from webapp.credentials.models import SECRET_FIELDS, Aim, CheckState, Connection, SetUp
from webapp.credentials.sealing import CannotUnseal
from webapp.profiling.models import MemoryProfile, State
from webapp.profiling.services import tariff_of

log = logging.getLogger(__name__)

_WITHOUT_LIMIT = 10**18


class _Ended(Exception):
    """It cannot go on; the text says why."""


def run(profile_id: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Make the profile. Harmless when it was made or is being made already."""
    asked = MemoryProfile.objects.filter(pk=profile_id, state=State.ASKED)
    if not asked.update(state=State.RUNNING, since=clock.now()):
        return
    profile = MemoryProfile.objects.select_related("connection__project").get(pk=profile_id)
    work = _Work(profile, clock)
    try:
        work.simulated() if profile.connection is None else work.in_account(profile.connection)
    except _Ended as error:
        work.tell(problem=str(error)[:500])
    except Exception as error:  # of a kind, not of a text: that may hold anything
        log.exception("profile %s failed", profile_id)
        work.tell(problem=f"Something unforeseen came back ({type(error).__name__}), and it ended there.")
    finally:
        work.tell(state=State.DONE)


class _Work:
    """One profile being made; each thing that happens is in its row at once."""

    def __init__(self, profile: MemoryProfile, clock: Clock) -> None:
        self._profile = profile
        self._plan = profile.parsed_plan
        self._clock = clock
        self._runs: list[dict[str, Any]] = []
        self._steps: list[dict[str, Any]] = []

    def tell(self, **changes: Any) -> None:
        MemoryProfile.objects.filter(pk=self._profile.pk).update(since=self._clock.now(), **changes)

    def simulated(self) -> None:
        """Real rollouts here, with the simulated cloud's times and prices; nothing is paid."""
        options = SimulatedOptions(learner="function")
        weights = self._weights()
        inner = SimulatedPlatform(options, executor=LocalExecutor(1, learner=NoLearner))
        ledger = MemoryLedger(_WITHOUT_LIMIT)
        self._measure(MeteredPlatform(inner, ledger, tariff_of(None)), weights)

    @sensitive_variables("secrets")
    def in_account(self, connection: Connection) -> None:
        try:
            clients = opening.aws_connection(connection).open()
            secrets = [opening.secret(connection, field).reveal() for field in SECRET_FIELDS[connection.kind]]
        except (opening.CannotOpen, CannotUnseal, KeysUnusable) as error:
            self._give_back([], [])
            raise _Ended(str(error)) from None
        with self._functions(connection, clients, secrets):
            weights = self._weights()
            ledger = MemoryLedger(self._profile.limit_picodollars)
            platform = LambdaPlatform(LambdaOptions(region=connection.region), clients, learner=NoLearner)
            self._measure(
                MeteredPlatform(platform, ledger, tariff_of(connection)),
                weights,
                spends=True,
                secrets=secrets,
            )

    def _weights(self) -> bytes:
        try:
            return first_weights(self._plan.environment)
        except NoWeights as error:
            raise _Ended(f"The environment could not be made here: {error}") from None

    def _measure(
        self, platform: MeteredPlatform, weights: bytes, *, spends: bool = False, secrets: Any = ()
    ) -> None:
        try:
            name = f"profile{self._profile.pk}"
            for one in measured(self._plan, platform, weights, name=name):
                self._runs.append(scrubbed(asdict(one), secrets))
                spent = platform.spend().spent_picodollars if spends else 0
                self.tell(runs=self._runs, spent_picodollars=spent)
                if not self._still_ours():
                    raise _Ended("Somebody else set the account up meanwhile, and it ended there.")
        finally:
            platform.close()

    # The account, which is ours as long as its set-up has our number.

    @contextmanager
    def _functions(self, connection: Connection, clients: AwsClients, secrets: list[str]) -> Iterator[None]:
        """Functions of the sizes that were missing, gone again at the end unless they are to stay."""
        owner, new = setting_up.owner_of(connection), list(self._profile.made_mb)
        mine = self._set_up.filter(state=CheckState.ASKED)
        if not mine.update(state=CheckState.RUNNING, since=self._clock.now()):
            raise _Ended("Somebody else set the account up meanwhile, and nothing was begun.")
        missing = True
        try:
            if new:
                packed = partial(setting_up.package, connection.emulated)
                missing = self._step_through(aws.set_up(clients, owner, new, packed), secrets)
                if missing:
                    raise _Ended("The functions could not be made; the steps below say why.")
            missing = False
            yield
        finally:
            kept = new if self._profile.keep and not missing else []
            left = False
            if new and not kept:
                left = self._step_through(aws_removal.remove_sizes(clients, owner, new), secrets)
            self._give_back(kept, new if left else [])

    def _step_through(self, steps: Iterator[Step], secrets: list[str]) -> bool:
        """Tell each step as it is done; whether one could not be."""
        missing = False
        for step in steps:
            self._steps.append(scrubbed(step.as_dict(), secrets))
            self.tell(steps=self._steps)
            self._still_ours()
            missing = missing or step.state == "missing"
        return missing

    @property
    def _set_up(self) -> Any:
        return SetUp.objects.filter(
            connection_id=self._profile.connection_id, number=self._profile.set_up_number
        )

    def _still_ours(self) -> bool:
        """A sign of life in the set-up's row; False once it is somebody else's."""
        if self._profile.connection_id is None:
            return True
        return bool(self._set_up.filter(state=CheckState.RUNNING).update(since=self._clock.now()))

    def _give_back(self, kept: list[int], left: list[int]) -> None:
        """The account to whoever sets it up next: with what was kept, and with what could not be taken away."""
        made = self._set_up.first()
        if made is None:
            return
        ready = sorted({*made.ready_mb, *kept})
        asked = sorted({size for size in made.asked_mb if size not in self._profile.made_mb} | {*kept, *left})
        self._set_up.update(
            state=CheckState.DONE,
            since=self._clock.now(),
            aim=Aim.SET_UP if asked or made.asked_bucket else Aim.TAKE_DOWN,
            asked_mb=asked,
            ready_mb=ready,
            steps=[step for step in self._steps if step["state"] == "missing"],
        )
