"""Runs one job in this process, from taking its lease to its last event.

However the run ends, the job can continue: it has ended, is paused, or is recovering with its lease released.
After kill -9 the worker that watches the process does this, or the next check of expired leases.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import cast

from cloud.accounts.connections import AwsConnection, AzureConnection
from cloud.accounts.register import Holder, RegisterClosed
from cloud.failures import out_of_memory_words
from cloud.money.metering import MeteredPlatform
from cloud.money.rents.slices import A_LONG_ROUND
from cloud.platforms.model import Access
from cloud.platforms.pulled import ReachableMailbox
from cloud.platforms.ray.head import NoRay
from training.engine.checkpoints import CheckpointError
from training.engine.memory_limit import is_out_of_memory, lift_limit
from training.engine.messages import CheckpointSaved, Evaluated, Event, RoundFinished, Stopped
from training.engine.ports import Control
from training.engine.ports import Desired as DesiredByEngine
from training.engine.train import train
from training.scaling.plan import Bounds
from training.spec import TrainingSpec
from training.tasks.supervised_spec import Supervised
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import decrypt
from webapp.connections.gateway.coordinator import MailboxClosed, open_mailbox
from webapp.database.faults import is_unavailable
from webapp.database.leases import CRASHED_EXIT, LEASE_LOST_EXIT, Heartbeat, LeaseLost
from webapp.job_states import TERMINAL
from webapp.jobs import failpoints
from webapp.jobs.actor_bounds import bounds_of
from webapp.jobs.launch.job_memory import limit_process, memory_obstacle, memory_of
from webapp.jobs.launch.launch_budget import least_of
from webapp.jobs.launch.platforms import requirements_of
from webapp.jobs.launch.preflight import obstacle
from webapp.jobs.lineage import load_first_checkpoint
from webapp.jobs.models import Checkpoint, Desired, Job
from webapp.jobs.policies.evaluation_films import queue_film, send_waiting_film
from webapp.jobs.policies.judgements import judge_kept_models
from webapp.jobs.reasons import Reason, StateChange
from webapp.jobs.running.assembly import assemble, with_cache
from webapp.jobs.running.budget_throttle import WatchedLedger, bounds_near, drain_reason, no_beginning
from webapp.jobs.running.checkpoint_files import (
    CheckpointFiles,
    CheckpointNotWritten,
    CheckpointsUnreadable,
    checkpoint_folder,
)
from webapp.jobs.running.database_wait import (
    DatabaseWait,
    PatientLedger,
    patient_holder,
    patient_mailbox,
)
from webapp.jobs.running.leases import renew_lease, take_lease
from webapp.jobs.running.platform_notes import Notes
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import begin_run, end_run, resume_point, run_ended
from webapp.jobs.running.run_log import RunLog
from webapp.jobs.running.storage_wait import StorageWait
from webapp.jobs.running.tracking import Trackers
from webapp.jobs.services import limits
from webapp.money.ledger import DatabaseLedger, LedgerClosed
from webapp.money.queries import Limit, limits_of

log = logging.getLogger(__name__)

_ASK_EVERY_S = 1.0

HolderOf = Callable[[Job, int, str, Clock], Holder]
"""Return the holder of a job's resources in a connection's account, under an epoch."""


class CannotRun(Exception):
    """The job cannot run on this machine, and a retry would not help. The text says why."""


_ENDS = {
    CheckpointNotWritten: Reason.CHECKPOINT_NOT_WRITTEN,
    CheckpointsUnreadable: Reason.CHECKPOINT_UNREADABLE,
    CannotRun: Reason.CANNOT_RUN,
}
"""The errors after which a job is not run again by itself, or only once its storage is back."""


def _no_account(job: Job, epoch: int, connection_id: str, clock: Clock) -> Holder:
    raise CannotRun("This process keeps no register of resources, so it runs nothing in an account.")


def run_job(
    job_id: str,
    *,
    owner: str,
    hand_over: threading.Event,
    holder_of: HolderOf = _no_account,
    own_process: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> int:
    """Run the job to its end, or until `hand_over` is set; return the process's exit code, 0 also if another
    process runs the job.

    A job in a cloud account needs `holder_of`, so that every resource it starts is registered and ended.
    `own_process`: this process is the job's alone, so its memory is limited to what the job may take.
    """
    wait = DatabaseWait(job_id, hand_over)
    if (
        hand_over.is_set()
        or (epoch := wait(partial(take_lease, job_id=job_id, owner=owner, clock=clock))) is None
    ):
        return 0
    ended = partial(run_ended, job_id=job_id, epoch=epoch, clock=clock)
    with RunLog(job_id) as run_log, ExitStack() as left:
        try:
            with Heartbeat(job_id, partial(renew_lease, job_id=job_id, epoch=epoch)):
                run = wait(partial(_Run, job_id, epoch, hand_over, holder_of, clock, run_log, wait))
                left.callback(run.trackers.close)
                if own_process:
                    run.limit_memory()
                stopped = run.train()
            # The heartbeat has stopped by now: it would take the lease released here for a lost one.
            wait(partial(run.end, stopped))
            run.trackers.close(stopped, handed_over=hand_over.is_set())
        except _HandedOver:
            ended(why=Reason.WORKER_STOPPED.change())
        except (CheckpointNotWritten, CheckpointsUnreadable, CannotRun) as error:
            log.error("job %s: %s", job_id, error)
            if hand_over.is_set() and isinstance(error, CheckpointNotWritten):
                ended(why=Reason.WORKER_STOPPED.change())
            else:
                why = _shorten(_ENDS[type(error)].change(error=error))
                wait(partial(end_run, job_id=job_id, epoch=epoch, why=why, clock=clock))
        except (LeaseLost, LedgerClosed, MailboxClosed, RegisterClosed) as error:
            log.error("job %s: %s", job_id, error)
            return LEASE_LOST_EXIT
        except Exception as error:
            log.exception("job %s failed", job_id)
            if is_out_of_memory(error):
                lift_limit()
                why = Reason.OUT_OF_MEMORY.change(words=out_of_memory_words())
                wait(partial(end_run, job_id=job_id, epoch=epoch, why=why, clock=clock))
                return 0
            if is_unavailable(error):
                why = Reason.DATABASE_NOT_WRITTEN.change()
            else:
                why = _shorten(Reason.RUN_FAILED.change(error=f"{type(error).__name__}: {error}"))
            wait(partial(ended, why=why))
            return CRASHED_EXIT
        else:
            run.judge_models()
    return 0


class _HandedOver(Exception):
    """The process is being stopped before anything was started."""


class _Run:
    """One run of a job under one epoch of its lease."""

    def __init__(
        self,
        job_id: str,
        epoch: int,
        hand_over: threading.Event,
        holder_of: HolderOf,
        clock: Clock,
        run_log: RunLog,
        wait: DatabaseWait,
    ) -> None:
        self._wait = wait
        self._job = Job.objects.select_related("account", "project").get(pk=job_id)
        self._epoch = epoch
        self._hand_over = hand_over
        self._holder_of = holder_of
        self._clock = clock
        self._spec = self._job.parsed_spec()
        keep = self._spec.training.checkpoints.keep
        self._storage_wait = StorageWait(job_id, epoch, hand_over, clock=clock)
        begun = Checkpoint.objects.filter(job_id=job_id).exists()
        folder = checkpoint_folder(job_id)
        self._store = CheckpointFiles(folder, keep, begun=begun, wait=self._storage_wait)
        score = self._spec.training.score
        self._recorder = Recorder(job_id, epoch, keep_checkpoints=keep, score=score, clock=clock)
        self._log = run_log
        self._notes = Notes(job_id, epoch, clock=clock)
        self.trackers = Trackers(self._job, clock=clock)
        self._allowed = limits().actors(self._spec.platform.kind)
        self._bounds = self._bounds_of(self._job.actors_least, self._job.actors_most)
        on_reserve = partial(failpoints.reach, "after_reserve")
        ledger = DatabaseLedger(self._job.account.pk, epoch, clock=clock, after_reserve=on_reserve)
        self._ledger = WatchedLedger(PatientLedger(ledger, wait))
        self._desired = Desired.RUN
        self._control_now = Control(bounds=self._bounds)
        self._room_for_use = 0
        self._no_start = ""
        self._platform: MeteredPlatform | None = None
        self._round_s = 0.0
        self._polled_s = float("-inf")
        self._evaluated = False

    def limit_memory(self) -> None:
        """Limit this process and its workers to what the job may take, if that is known."""
        if (memory := memory_of(self._spec)) is not None:
            limit_process(memory)

    def train(self) -> Stopped:
        """Train and return the last event, once the platform is closed and everything is paid."""
        self._wait(partial(begin_run, job_id=self._job.pk, epoch=self._epoch, clock=self._clock))
        found = requirements_of(self._spec.platform).unsafe(self._spec) or obstacle(self._spec.training)
        if found := found or memory_obstacle(self._spec):
            raise CannotRun(found.sentence)
        self._no_start = self._wait(self._start_obstacle)
        self._go_on_unless_stopped()
        return self._record_events()

    def _go_on_unless_stopped(self) -> None:
        """Check for a stop between the long steps before the engine runs; the engine calls `_control`."""
        if self._hand_over.is_set():
            raise _HandedOver

    def end(self, stopped: Stopped) -> None:
        """Record the last event, or hand the job over; both release the lease."""
        self._log.tell(stopped, self._job.declaration)
        if stopped.reason_code == "paused" and self._hand_over.is_set():
            self._recorder.flush()
            stopped_by = Reason.WORKER_STOPPED.change()
            run_ended(job_id=self._job.pk, epoch=self._epoch, why=stopped_by, clock=self._clock)
        else:
            self._recorder.finish(stopped)
            send_waiting_film(self._job.pk)

    def judge_models(self) -> None:
        """Judge the models of a job that is over, unless this process has to stop."""
        if isinstance(self._spec.training, Supervised) and not self._hand_over.is_set():
            self._job.refresh_from_db(fields=["observed"])
            if self._job.observed in TERMINAL:
                judge_kept_models(self._job)

    def _record_events(self) -> Stopped:
        """Record all events but the last, which is returned."""
        self._go_on_unless_stopped()
        failpoints.reach("before_open")
        try:
            platform = assemble(
                self._spec,
                self._ledger,
                Access(self._connect, self._hold, self._reach),
                lambda opened: self._wait(partial(self._notes.of, with_cache(opened, self._job.pk))),
            )
        except NoRay as error:
            raise CannotRun(str(error)) from None
        self._platform = platform
        stopped = None
        try:
            self._go_on_unless_stopped()
            self.trackers.open()
            for event in self._events(platform):
                if isinstance(event, Stopped):
                    stopped = event
                    continue
                if isinstance(event, CheckpointSaved):
                    self._storage_wait.end()
                self._wait(partial(self._recorder.record, event))
                self._log.tell(event, self._job.declaration)
                self.trackers.tell(event)
                self._wait(self._notes.look)
                if isinstance(event, RoundFinished):
                    self._after_round(event)
                elif self._films:
                    self._wait(partial(self._film, event))
        finally:
            platform.close()
            self._wait(self._notes.end)
        if stopped is None:
            raise RuntimeError("the engine ended without its last event")
        return stopped

    def _connect(self, connection_id: str) -> AwsConnection | AzureConnection:
        """Return the project's connection, decrypted in this process only."""
        try:
            return self._wait(partial(decrypt.open_connection, self._job.project_id, connection_id))
        except decrypt.CannotOpen as error:
            raise CannotRun(str(error)) from None

    def _reach(self) -> ReachableMailbox:
        opened = partial(open_mailbox, job_id=self._job.pk, epoch=self._epoch, clock=self._clock)
        return patient_mailbox(self._wait(opened), self._wait)

    def _hold(self, connection_id: str) -> Holder:
        holder = self._holder_of(self._job, self._epoch, connection_id, self._clock)
        return patient_holder(holder, self._wait)

    def _events(self, platform: MeteredPlatform) -> Iterator[Event]:
        load = self._store.load_recorded
        resume = self._wait(
            partial(resume_point, job_id=self._job.pk, epoch=self._epoch, load=load, clock=self._clock)
        )
        return train(
            self._spec.training,
            platform=platform,
            checkpoints=self._store,
            control=self._control,
            resume=resume.data if resume else None,
            begin_with=None if resume else self._beginning(),
            # Calls of many jobs meet in an account's log and its warm functions.
            call_prefix=f"{self._job.pk}-e{self._epoch}-",
        )

    def _beginning(self) -> bytes | None:
        try:
            return self._wait(partial(load_first_checkpoint, self._job.pk))
        except CheckpointError as error:
            raise CheckpointsUnreadable(
                f"The checkpoint that this fork starts from is lost: {error}. Bring {checkpoint_folder(self._job.pk)}"
                " back and the job goes on by itself, or stop it and fork again."
            ) from None

    def _bounds_of(self, least: int | None, most: int | None) -> Bounds:
        """Return the user's bounds, with the memory sizes that the platform has."""
        sizes_mb = self._spec.platform.memory_sizes_mb(self._spec.training.memory_mb)
        return replace(bounds_of(least, most, self._allowed), memory_sizes_mb=sizes_mb)

    def _control(self) -> Control:
        if self._hand_over.is_set() and self._desired == Desired.RUN:
            return Control(desired="paused", bounds=self._bounds)
        if time.monotonic() - self._polled_s >= _ASK_EVERY_S:
            self._polled_s = time.monotonic()
            self._control_now = self._wait(self._read_control)
        return self._control_now

    def _read_control(self) -> Control:
        wanted = Job.objects.values_list("desired", "actors_least", "actors_most").get(pk=self._job.pk)
        self._desired, self._bounds = Desired(wanted[0]), self._bounds_of(*wanted[1:])
        return self._control_near_limit()

    def _after_round(self, event: RoundFinished) -> None:
        """Check the limits between rounds if the next one might reach them: a simulated round takes milliseconds."""
        self._ledger.round_over()
        self._round_s = event.report.total_s
        needs = self._ledger.round_needs + self._rent_ahead()
        if self._control_now.drain or self._room_for_use - self._ledger.used < 2 * needs:
            self._control_now = self._wait(self._control_near_limit)

    def _control_near_limit(self) -> Control:
        limits = limits_of(self._job.account.pk, self._spec.at_line, self._clock.now())
        self._room_for_use = min(limit.room for limit in limits) + self._ledger.used
        return Control(
            desired=cast("DesiredByEngine", self._desired.value),
            bounds=bounds_near(limits, self._bounds, self._spec.training.scaling.largest),
            drain=self._drain(limits),
        )

    @property
    def _films(self) -> bool:
        return self._spec.films and isinstance(self._spec.training, TrainingSpec)

    def _film(self, event: Event) -> None:
        """Have the first checkpoint after an evaluation filmed: mostly the one that was evaluated."""
        if isinstance(event, Evaluated):
            self._evaluated = True
        elif isinstance(event, CheckpointSaved) and self._evaluated:
            self._evaluated = False
            queue_film(self._job.pk, event, clock=self._clock)

    def _start_obstacle(self) -> str:
        """Return why the run may not begin; empty if it may. Other jobs may have spent since the launch."""
        least = least_of(self._spec, self._job.actors)
        limits = limits_of(self._job.account.pk, self._spec.at_line, self._clock.now())
        return no_beginning(limits, least, self._round_name) if isinstance(least, int) else ""

    def _drain(self, limits: Sequence[Limit]) -> str:
        """Return why no further round may begin. The first round is never drained: it has its money."""
        if not self._ledger.rounds:
            return self._no_start
        return drain_reason(limits, self._ledger, self._rent_ahead(), self._round_name)

    @property
    def _round_name(self) -> str:
        return self._spec.training.round_name

    def _rent_ahead(self) -> int:
        """Return the rent that falls due during a round like the last."""
        return self._platform.rent_ahead(A_LONG_ROUND * self._round_s) if self._platform is not None else 0


def _shorten(why: StateChange) -> StateChange:
    """Return the change with a sentence of at most 500 characters: errors may be of any length."""
    sentence = why.sentence
    return why if len(sentence) <= 500 else why._replace(sentence=f"{sentence[:499]}…")
