"""What a job on AWS Lambda requires of its account: functions that are set up, and calls that fit into a request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cloud.actor.wire import RESULT_LIMIT_BYTES
from cloud.platforms.aws.invoke import INLINE_AT_MOST_BYTES
from cloud.platforms.aws_lambda import LambdaOptions
from cloud.timing.forecasting.workload import spaces_of
from training.calls.kind import SLACK_BYTES, Sizes
from training.data.store import MissingData
from training.rl.message_sizes import sizes_of
from training.spec import TrainingSpec
from training.tasks.supervised_spec import Supervised
from training.tasks.training import Training
from webapp.connections import queries
from webapp.connections.models import Connection, SetUp
from webapp.connections.text import sizes
from webapp.formatting import plural
from webapp.jobs.form.spec_problems import SpecProblem, at_connection
from webapp.jobs.launch.requirements import (
    AccountRequirements,
    free_quota,
    missing_price,
    too_many_learners,
)
from webapp.jobs.spec import JobSpec

WITHOUT_FUNCTION = "{} is not set up: there is no function to run. Set it up under Clouds, then launch."

_AT_ONCE = "Functions at once"
"""The quota's name in a connection's test report (cloud.accounts.checks)."""


class FunctionRequirements(AccountRequirements):
    def of_account(
        self, connection: Connection, spec: JobSpec, options: LambdaOptions
    ) -> Iterator[SpecProblem]:
        if missing := list(_without_function(connection, queries.set_up_of(connection), spec.training)):
            yield from missing
            return
        placed = options.model_copy(update={"region": connection.region})
        if words := missing_price(placed, spec.training.memory_mb):
            yield at_connection(words)
            return
        yield from _too_large(connection, spec)
        yield from _too_few_sizes(connection, spec)
        allowed = functions_at_once(connection)
        largest = spec.training.scaling.largest
        wanted = largest if options.at_once is None else min(largest, options.at_once)
        if allowed is not None and wanted > allowed:
            path = spec.path_of_largest
            yield SpecProblem(
                path,
                f"This account runs {plural(allowed, 'function')} at once; the job asks for {wanted:,}."
                f" Ask for {allowed:,} at most ({path}), let some wait (platform.at_once), or have AWS allow more,"
                " which is free: Service Quotas, AWS Lambda.",
            )
        room = min((limit for limit in (allowed, options.at_once) if limit is not None), default=None)
        if room is not None and (too_many := too_many_learners(spec.training, room, "function")):
            yield too_many
        if allowed is not None and options.provisioned > allowed:
            path = "platform.provisioned"
            yield SpecProblem(path, f"Functions kept ready ({path}): this account runs {allowed:,} at once.")

    def limit_words(self, connection: Connection) -> str:
        at_once = functions_at_once(connection)
        return (
            f", the account {at_once:,} at once"
            if at_once is not None
            else ", the account's limit is unknown"
        )

    def follows(self, made: SetUp | None, spec: JobSpec) -> dict[str, Any]:
        if spec.training.scaling.memory_range_mb is None:
            return {}
        return {"memory_ladder_mb": tuple(made.ready_mb) if made is not None else ()}


def _without_function(
    connection: Connection, made: SetUp | None, training: Training
) -> Iterator[SpecProblem]:
    if made is None or not made.ready_mb:
        yield at_connection(WITHOUT_FUNCTION.format(connection.name))
    elif training.memory_mb not in made.ready_mb:
        path = f"training.{training.memory_field}"
        sizes_mb = ", ".join(f"{size:,} MB" for size in made.ready_mb)
        yield SpecProblem(
            path,
            f"Memory of an actor ({path}): {connection.name} has no function with {training.memory_mb:,} MB. It has"
            f" {sizes_mb}: take that, or set another one up under Clouds.",
        )


def _too_many_rows(training: Supervised) -> Iterator[SpecProblem]:
    try:
        call_bytes = training.call_bytes
    except MissingData:
        return  # the data is checked by itself
    if call_bytes > INLINE_AT_MOST_BYTES:
        path = "training.minibatch"
        yield SpecProblem(
            path,
            f"Minibatch ({path}): {training.progress_a_call:,} rows and the parameters have"
            f" {call_bytes / 2**20:.1f} MiB, more than a call's request, which holds"
            f" {INLINE_AT_MOST_BYTES / 2**20:.1f} MiB. Take a smaller minibatch or fewer local steps.",
        )


def _too_few_sizes(connection: Connection, spec: JobSpec) -> Iterator[SpecProblem]:
    """Return the problem of a policy that changes memory, where fewer than two sizes of its range are set up."""
    chosen, made = spec.training.scaling.memory_range_mb, queries.set_up_of(connection)
    if chosen is None or made is None:
        return
    least, most = chosen
    if sum(least <= size <= most for size in made.ready_mb) < 2:
        path = "training.scaling"
        yield SpecProblem(
            path,
            f"Policy ({path}): it chooses from {least:,} to {most:,} MB. {sizes(made.ready_mb)} set up at"
            f" {connection.name}: set up more sizes under Clouds, or take a policy that leaves memory as it is.",
        )


def _too_large(connection: Connection, spec: JobSpec) -> Iterator[SpecProblem]:
    """Return the problem of a network that exceeds a call's payload, without a bucket to load it from, or of rows that
    exceed it, which come with the call.
    """
    if isinstance(spec.training, Supervised):
        yield from _too_many_rows(spec.training)
    made = queries.set_up_of(connection)
    spaces, known = spaces_of(spec.training)
    if not known or not isinstance(spec.training, TrainingSpec):
        return
    sizes, has_bucket = sizes_of(spec.training, spaces), made is not None and bool(made.ready_bucket)
    yield from slice_too_large(spec.training, sizes, has_bucket=has_bucket)
    yield from gradient_too_large(spec.training, sizes)
    if has_bucket:
        return
    if sizes.weights + sizes.state > INLINE_AT_MOST_BYTES:
        path = "training.network"
        yield SpecProblem(
            path,
            f"Network ({path}): a policy of {sizes.weights / 2**20:.1f} MiB does not fit into a call to a function,"
            f" which holds {INLINE_AT_MOST_BYTES / 2**20:.1f} MiB. Take a smaller network, or set {connection.name} up"
            " again under Clouds with a bucket for large networks.",
        )


def slice_too_large(training: TrainingSpec, sizes: Sizes, *, has_bucket: bool) -> Iterator[SpecProblem]:
    """Return the problem of a slice that exceeds a call's payload together with the policies of the other learners, and
    with the parameters where there is no bucket for those.
    """
    loop, algorithm = training.loop.gradients, training.algorithm
    if loop is None or loop.where != "actor":
        return
    policies = loop.learners - 1 if loop.truncated.reads_policies else 0
    kept = 4 * training.progress_a_call * len(algorithm.kept_of_first_pass)
    # Where actors wait, a slice may hold what is left over of the wave before.
    sampling = min(loop.trajectories_per_gradient, 2) if loop.actors_wait else loop.trajectories_per_gradient
    others = (policies + sampling * algorithm.anchors_to_sampling) * sizes.weights
    room = INLINE_AT_MOST_BYTES - others - (0 if has_bucket else sizes.parameters)
    fitting = max(0, room) // (sizes.trajectory + kept)
    if fitting >= loop.trajectories_per_gradient:
        return
    path = "training.loop.trajectories_per_gradient"
    limit = f"a call to a function, which holds {INLINE_AT_MOST_BYTES / 2**20:.1f} MiB"
    yield SpecProblem(
        path,
        f"Trajectories per gradient ({path}): {loop.trajectories_per_gradient:,} of them, the parameters and the"
        f" learners' policies do not fit into {limit}. "
        + (f"Take {fitting:,} at most." if fitting else "Take a smaller network or fewer learners."),
    )


def gradient_too_large(training: TrainingSpec, sizes: Sizes) -> Iterator[SpecProblem]:
    """Return the problem of a gradient that exceeds a function's answer by itself, or together with what its first pass
    prepares for later ones.
    """
    loop, algorithm = training.loop.gradients, training.algorithm
    if loop is None or loop.where != "actor":
        return
    room = RESULT_LIMIT_BYTES - SLACK_BYTES - sizes.gradient
    limit = f"the answer of a function, which holds {RESULT_LIMIT_BYTES / 2**20:.1f} MiB"
    if room < 0:
        path = "training.network"
        yield SpecProblem(
            path,
            f"Network ({path}): a gradient of {sizes.gradient / 2**20:.1f} MiB does not fit into {limit}. Take a"
            " smaller network, or compute gradients on the learner's machine (training.loop.where).",
        )
        return
    kept = 4 * training.progress_a_call * len(algorithm.kept_of_first_pass) if algorithm.passes > 1 else 0
    if kept * loop.trajectories_per_gradient <= room:
        return
    path, fitting = "training.loop.trajectories_per_gradient", room // kept
    yield SpecProblem(
        path,
        f"Trajectories per gradient ({path}): the gradient and what its first pass returns of"
        f" {loop.trajectories_per_gradient:,} of them do not fit into {limit}. "
        + (
            f"Take {fitting:,} at most."
            if fitting
            else "Take a smaller network, or sample fewer steps a call."
        ),
    )


def functions_at_once(connection: Connection) -> int | None:
    """Return the account's concurrency at its last test, less what others reserved; None if unknown."""
    return free_quota(connection, _AT_ONCE)
