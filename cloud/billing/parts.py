"""The parts of a bill: the name of each and what it pays for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PartKey = Literal[
    "environment",
    "inference",
    "transfer",
    "actors",
    "learner",
    "evaluation",
    "detector",
    "scheduler",
    "cold_starts",
    "requests",
    "storage",
    "provisioned",
    "cache",
    "address_and_disk",
    "idle",
    "failed",
    "unknown",
]


@dataclass(frozen=True)
class BillPart:
    key: PartKey
    title: str
    words: str


PARTS: tuple[BillPart, ...] = (
    BillPart("environment", "Environments", "Actors stepping their environments"),
    BillPart("inference", "Inference", "Actors choosing actions with the policy"),
    BillPart("transfer", "Transfer", "Actors reading weights, packing and handing over what they sampled"),
    BillPart("actors", "Actors", "Sampling whose parts were not timed"),
    BillPart("learner", "Learner", "Updates"),
    BillPart("evaluation", "Evaluation", "Episodes played to judge the policy"),
    BillPart("detector", "Detector", "Hessian products within updates"),
    BillPart("scheduler", "Scheduler", "Deciding how many actors each round gets"),
    BillPart("cold_starts", "Cold starts", "Billed while a fresh function started"),
    BillPart("requests", "Requests", "A fee for each call"),
    BillPart("storage", "Storage", "Requests for payloads too large for a call"),
    BillPart("provisioned", "Kept warm", "Functions held ready, busy or not"),
    BillPart("cache", "Cache", "A machine that holds trajectories and weights"),
    BillPart("address_and_disk", "Address and disk", "Of every rented machine"),
    BillPart("idle", "Idle", "Machines and actors that were rented while nothing ran"),
    BillPart("failed", "Failed calls", "Failed, stopped or cancelled, without a result"),
    BillPart("unknown", "Booked in full", "The true cost is unknown, so all that was set aside counts"),
)
