"""Sets and removes a project's trackers, and seals their tokens."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from webapp.accounts.models import Project
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import key_ring
from webapp.connections.key_ring import KeysUnusable
from webapp.connections.sealing import CannotOpen, Secret, seal, unseal
from webapp.http import safe_http
from webapp.trackers import wandb
from webapp.trackers.mlflow import MlflowRun
from webapp.trackers.models import TOKEN, TrackedRun, Tracker, TrackerKind, TrackerSecret
from webapp.trackers.tracking import NotTracked, Tracking

_EXPERIMENT = re.compile(r"[^'\"`\\\x00-\x1f]{1,120}")
_WANDB_PROJECT = re.compile(r"([A-Za-z0-9_.-]{1,60}/)?[A-Za-z0-9_.-]{1,59}")
_LONGEST_PROBLEM, _LONGEST_URL = 400, 600


class TrackerRefused(Exception):
    """The setting is refused; the text says why and what to do. `field` is the one it is about."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@sensitive_variables("token")
def set_tracker(
    *,
    project: Project,
    kind: str,
    address: str,
    place: str,
    on: bool = True,
    token: Secret | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Tracker:
    """Set the project's tracker of this kind. Without a token it keeps its own, unless its address changes.

    Raises TrackerRefused.
    """
    address, place = address.strip().rstrip("/"), place.strip()
    _CHECKS[kind](address, place)
    before = Tracker.objects.filter(project=project, kind=kind).first()
    moves = before is not None and before.address != address
    if kind == TrackerKind.WANDB and not token and (moves or before is None or not before.secrets.exists()):
        raise TrackerRefused("token", "W&B needs an API key: wandb.ai/authorize shows yours.")
    try:
        with key_ring.locked(), transaction.atomic():
            made, _ = Tracker.objects.update_or_create(
                project=project,
                kind=kind,
                defaults={"address": address, "place": place, "on": on},
                create_defaults={"address": address, "place": place, "on": on, "created_at": clock.now()},
            )
            if token or moves:
                made.secrets.all().delete()
            if token:
                _seal(made, token, clock)
    except KeysUnusable as refusal:
        raise TrackerRefused("token", f"Nothing was stored. {refusal}") from None
    return made


def remove_tracker(*, tracker: Tracker) -> None:
    """Remove the setting with its token. What was sent stays where it is."""
    tracker.delete()


@sensitive_variables("token")
def open_run(tracker: Tracker) -> Tracking:
    """A run that can begin in the tracker, with its token opened. Raises NotTracked."""
    try:
        token = _open_token(tracker)
    except CannotOpen as refusal:
        raise NotTracked(str(refusal)) from None
    run = MlflowRun if tracker.kind == TrackerKind.MLFLOW else wandb.WandbRun
    return run(tracker.address, tracker.place, token)


def note_run(*, job_id: str, kind: str, url: str, problem: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Note where the job's run is in that tracker, and why rounds are missing there."""
    known = {"problem": problem[:_LONGEST_PROBLEM], "at": clock.now()}
    if url.startswith(("https://", "http://")) and len(url) <= _LONGEST_URL:  # the page links to it
        known["url"] = url
    TrackedRun.objects.update_or_create(job_id=job_id, kind=kind, defaults=known)


@sensitive_variables("token")
def _seal(tracker: Tracker, token: Secret, clock: Clock) -> None:
    sealed = seal(token, tracker.sealed_place(), key_ring.ring().first)
    TrackerSecret.objects.create(
        tracker=tracker,
        field=TOKEN,
        key_id=sealed.key_id,
        wrapped_key=sealed.wrapped_key,
        ciphertext=sealed.ciphertext,
        hint=token.hint,
        set_at=clock.now(),
    )


@sensitive_variables()
def _open_token(tracker: Tracker) -> Secret | None:
    row = TrackerSecret.objects.select_related("tracker").filter(tracker=tracker, field=TOKEN).first()
    return None if row is None else unseal(row.sealed(), row.place(), key_ring.ring().by_id)


def _check_mlflow(address: str, place: str) -> None:
    if not _EXPERIMENT.fullmatch(place):
        raise TrackerRefused("place", "An experiment's name has 1 to 120 letters, without quotation marks.")
    if urlsplit(address).query or urlsplit(address).fragment:
        raise TrackerRefused("address", "This is a page of MLflow. Give the address of its server only.")
    _check_reachable(address)


def _check_wandb(address: str, place: str) -> None:
    """Their package connects by itself, so an address of a person's own must be one that the operator named."""
    if not wandb.is_installed():
        raise TrackerRefused("", wandb.MISSING)
    if not _WANDB_PROJECT.fullmatch(place):
        raise TrackerRefused(
            "place",
            "A project of W&B is written project or entity/project, with letters, digits, -, _ and dots.",
        )
    if not address:
        return
    _check_reachable(address)
    parts = urlsplit(address)
    if not safe_http.is_exempt(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)):
        raise TrackerRefused(
            "address",
            "Leave the address empty for wandb.ai. Another server is named by this installation's operator first,"
            " in STARLING_ALERT_HOSTS.",
        )


def _check_reachable(address: str) -> None:
    try:
        safe_http.target_of(address)
    except (safe_http.AddressRefused, safe_http.HostUnreachable) as refusal:
        raise TrackerRefused("address", str(refusal)) from None


_CHECKS = {TrackerKind.MLFLOW.value: _check_mlflow, TrackerKind.WANDB.value: _check_wandb}
