"""The parts of a bill: the name of each and what it pays for."""

from __future__ import annotations

from training.calls import KINDS
from training.calls.kind import BillPart

__all__ = ["BillPart", "PartKey", "bill_parts", "parts_of_calls"]

PartKey = str
_OF_ACTORS = (
    BillPart("environment", "Environments", "Actors stepping their environments"),
    BillPart("inference", "Inference", "Actors choosing actions with the policy"),
    BillPart("transfer", "Transfer", "Actors reading weights, packing and handing over what they sampled"),
)
_OTHERS = (
    BillPart("detector", "Detector", "Hessian products within updates"),
    BillPart("scheduler", "Scheduler", "Deciding how many actors each round gets"),
    BillPart("cold_starts", "Cold starts", "Billed while a fresh function started"),
    BillPart("requests", "Requests", "A fee for each call"),
    BillPart("storage", "Storage", "Requests for payloads too large for a call"),
    BillPart("provisioned", "Kept warm", "Functions held ready, busy or not"),
    BillPart("cache", "Cache", "A machine that holds trajectories and weights"),
    BillPart("address_and_disk", "Address and disk", "Of every rented machine"),
    BillPart("idle", "Idle", "Machines and actors that were rented while nothing ran"),
    BillPart("dropped", "Dropped", "Gradients that no version was made of"),
    BillPart("failed", "Failed calls", "Failed, stopped or cancelled, without a result"),
    BillPart("unknown", "Booked in full", "The true cost is unknown, so all that was set aside counts"),
)


def bill_parts() -> tuple[BillPart, ...]:
    """Return all parts, in the order of a run: sampling, learning, judging, and what comes on top."""
    return (*_OF_ACTORS, *parts_of_calls(), *_OTHERS)


def parts_of_calls() -> tuple[BillPart, ...]:
    """Return the parts that pay for calls of some kind."""
    ordered = sorted(KINDS.values(), key=lambda kind: kind.role == "judging")
    return tuple({kind.part.key: kind.part for kind in ordered}.values())
