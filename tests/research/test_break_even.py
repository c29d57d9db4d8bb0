"""What learners' machines cost beside the price below which functions would be cheaper."""

from __future__ import annotations

from research.pricing_targets import place_of
from research.reports.break_even import shared_machines


def test_learners_share_the_price_of_all_their_machines() -> None:
    words = {
        name: shared_machines(place_of(f"stellaris_{name}_paper", "no_startup"))
        for name in ("cluster", "gpu", "hpc")
    }
    assert words["cluster"] == "p3.2xlarge that 4 share costs $3.08"
    assert words["gpu"] == "2 p3.2xlarge that 4 share cost $6.17"
    assert words["hpc"].startswith("4 p3.8xlarge that 16 share cost $")
