"""The parts of a bill: what each is called and what it pays for."""

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
    BillPart("inference", "Inference", "Actors asking the policy what to do"),
    BillPart("transfer", "Transfer", "Actors reading weights, packing and handing over what they sampled"),
    BillPart("actors", "Actors", "Sampling that nobody timed by its parts"),
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
    BillPart("idle", "Idle", "Machines and actors stood and nothing ran"),
    BillPart("failed", "Failed calls", "Failed, stopped or cancelled: nothing came of them"),
    BillPart(
        "unknown", "Booked in full", "Nobody could tell what it came to, so all that was set aside counts"
    ),
)
