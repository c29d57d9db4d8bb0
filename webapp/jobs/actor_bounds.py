"""Bounds on a job's number of actors. Users change them while the job runs; the next round follows them."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from training.scaling.fixed import Fixed
from training.scaling.plan import Bounds
from webapp.accounts.models import User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import plural, ungroup
from webapp.job_states import TERMINAL
from webapp.jobs.events.event_log import append_events, note
from webapp.jobs.launch import cloud_requirements
from webapp.jobs.models import Job
from webapp.jobs.services import limits
from webapp.jobs.spec import JobSpec

BECAUSE = "by the bounds set for this job"


class BoundsRefused(ValueError):
    """The bounds are not allowed. The text says why and what is."""


@transaction.atomic
def change_bounds(
    *, job: Job, user: User, least: int | None, most: int | None, clock: Clock = SYSTEM_CLOCK
) -> Job:
    """Allow the job's policy from `least` to `most` actors in every later round; None removes a bound.

    BoundsRefused if that is no range, or exceeds what this installation or the account allows; nothing is
    changed then.
    """
    job = Job.objects.select_for_update().get(pk=job.pk)
    if job.observed in TERMINAL:
        state = job.get_observed_display().lower()
        raise BoundsRefused(f"The job is over ({state}); its number of actors cannot be changed.")
    spec = job.parsed_spec()
    _require_range(least, most, limits().actors(spec.platform.kind))
    if least is not None and least > spec.training.scaling.largest:
        _require_room(job, spec, least)
    if (least, most) == (job.actors_least, job.actors_most):
        return job
    now, before = words(job, least, most), words(job, job.actors_least, job.actors_most)
    text = f"{now} Changed by {user}; before: {before}"
    facts: dict[str, Any] = {"actors_least": least, "actors_most": most}
    append_events(job.pk, [note(text, **facts)], clock=clock, changes=facts)
    job.refresh_from_db()
    return job


def words(job: Job, least: int | None, most: int | None) -> str:
    """Return bounds of the job as a sentence."""
    return job.declaration.say(_words(least, most))


def _words(least: int | None, most: int | None) -> str:
    if least is not None and least == most:
        return f"{plural(least, '{actor}')} in every {{round}}."
    if least is not None and most is not None:
        return f"From {least:,} to {most:,} {{actors}} in {{a_round}}."
    if least is not None:
        return f"At least {least:,} {{actors}} in {{a_round}}."
    if most is not None:
        return f"At most {most:,} {{actors}} in {{a_round}}."
    return "As many {actors} as the scaling policy decides."


def bounds_of(least: int | None, most: int | None, allowed: int) -> Bounds:
    """Return the bounds for the engine, within the limit of this installation."""
    if least is None and most is None:
        return Bounds(actors_max=allowed)
    return Bounds(
        actors_min=min(least or 1, allowed), actors_max=min(most or allowed, allowed), because=BECAUSE
    )


def number(text: str, what: str) -> int | None:
    """Parse a number of actors; None for an empty field. Raises BoundsRefused."""
    bare = ungroup(text)
    if not bare:
        return None
    if not bare.isdecimal() or len(bare) > 6:
        raise BoundsRefused(f"{what} must be a whole number, or empty; {text.strip()[:20]!r} was given.")
    return int(bare)


def _require_range(least: int | None, most: int | None, allowed: int) -> None:
    for what, value in (("The fewest actors", least), ("The most actors", most)):
        if value is not None and not 1 <= value <= allowed:
            raise BoundsRefused(f"{what} must be between 1 and {allowed:,} here; {value:,} was given.")
    if least is not None and most is not None and least > most:
        raise BoundsRefused(f"The fewest actors ({least:,}) cannot be more than the most ({most:,}).")


def _require_room(job: Job, spec: JobSpec, actors: int) -> None:
    """Check the cloud as at a launch: the job needs more actors than it was launched for."""
    training = spec.training.model_copy(update={"scaling": Fixed(actors=actors)})
    if obstacles := cloud_requirements.obstacles(job.project, spec.model_copy(update={"training": training})):
        raise BoundsRefused(" ".join(problem.sentence for problem in obstacles))
