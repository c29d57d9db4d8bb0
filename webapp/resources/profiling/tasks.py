"""The worker's part of a memory profile: it creates functions, measures calls and removes the functions again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from celery import shared_task

from cloud.accounts.profiling_runs import NoWeights, first_weights, measure_runs
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.aws_lambda import LambdaOptions, LambdaPlatform
from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.workers.executor import LocalExecutor
from cloud.workers.learner_thread import NoLearner
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.account_lease import AccountLease, LeaseClaim, LeaseRefused, leased_account
from webapp.connections.models import Connection
from webapp.processes.worker_stop import worker_stop
from webapp.resources.profiling.models import MemoryProfile, ProfileState
from webapp.resources.profiling.services import tariff_of

log = logging.getLogger(__name__)

_WITHOUT_LIMIT = 10**18


@shared_task(name="webapp.resources.profiling.tasks.profile_memory", expires=60)
def profile_memory(profile_id: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Measure the profile. Does nothing if it is not queued."""
    queued = MemoryProfile.objects.filter(pk=profile_id, state=ProfileState.REQUESTED)
    if not queued.update(state=ProfileState.RUNNING, since=clock.now()):
        return
    profile = MemoryProfile.objects.select_related("connection__project").get(pk=profile_id)
    work = _Work(profile, clock)
    try:
        work.simulated() if profile.connection is None else work.in_account(profile.connection)
    except (LeaseRefused, NoWeights, _Stopped) as error:
        work.write(problem=str(error)[:500])
    except Exception as error:  # of a kind, not of a text: that may hold anything
        log.exception("profile %s failed", profile_id)
        work.write(
            problem=f"An unexpected error ended it ({type(error).__name__}). The worker's log says more."
        )
    finally:
        work.write(state=ProfileState.DONE)


class _Stopped(Exception):
    """The worker stops: no further call is made, and the account's lease is released."""


class _Work:
    """One profile being measured. Each step is written to its row at once."""

    def __init__(self, profile: MemoryProfile, clock: Clock) -> None:
        self._profile = profile
        self._plan = profile.parsed_plan
        self._clock = clock
        self._steps: list[dict[str, Any]] = []

    def write(self, **changes: Any) -> None:
        MemoryProfile.objects.filter(pk=self._profile.pk).update(since=self._clock.now(), **changes)

    def simulated(self) -> None:
        """Run real rollouts here, with the simulated cloud's times and prices; nothing is paid."""
        weights = first_weights(self._plan.environment)
        inner = SimulatedPlatform(
            SimulatedOptions(learner="function"), executor=LocalExecutor(1, learner=NoLearner)
        )
        platform = MeteredPlatform(inner, MemoryLedger(_WITHOUT_LIMIT), tariff_of(None))
        self._measure(platform, weights, lambda run, spent: self.write(runs=run))

    def in_account(self, connection: Connection) -> None:
        """Run calls in the account, paid from a ledger that holds no more than the profile may cost."""
        number = self._profile.set_up_number
        assert number is not None
        claim = LeaseClaim(connection, number, tuple(self._profile.made_mb))
        with leased_account(claim, keep=self._profile.keep, on_step=self._step, clock=self._clock) as account:
            weights = first_weights(self._plan.environment)
            options = LambdaOptions(region=connection.region)
            inner = LambdaPlatform(options, account.clients, learner=NoLearner)
            ledger = MemoryLedger(self._profile.limit_picodollars)
            platform = MeteredPlatform(inner, ledger, tariff_of(connection))
            self._measure(platform, weights, lambda runs, spent: self._paid(account, runs, spent))

    def _step(self, step: dict[str, Any]) -> None:
        self._steps.append(step)
        self.write(steps=self._steps)

    def _paid(self, account: AccountLease, runs: list[dict[str, Any]], spent: int) -> None:
        self.write(runs=[account.scrubbed(run) for run in runs], spent_picodollars=spent)
        if not account.renew():
            raise LeaseRefused("Another set-up of the account began, so this one ended.")

    def _measure(
        self, platform: MeteredPlatform, weights: bytes, on_run: Callable[[list[dict[str, Any]], int], None]
    ) -> None:
        """Measure all calls. `on_run` gets all runs so far and their cost, after each."""
        runs: list[dict[str, Any]] = []
        try:
            for run in measure_runs(self._plan, platform, weights, name=f"profile{self._profile.pk}"):
                runs.append(asdict(run))
                on_run(runs, platform.spend().spent_picodollars)
                if worker_stop.requested:
                    raise _Stopped("The worker stopped while it was measuring. Measure again.")
        finally:
            platform.close()
