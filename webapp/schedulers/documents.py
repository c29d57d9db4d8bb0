"""A scheduler as a document, for files and for programs."""

from __future__ import annotations

from typing import Any

from webapp.schedulers.models import Version


def described(version: Version) -> dict[str, Any]:
    """A version as JSON, without its weights."""
    training = version.training
    return {
        "id": version.key,
        "name": version.scheduler.name,
        "version": version.number,
        "made_at": version.made_at.isoformat(),
        "facts": version.facts,
        "spec": training.spec,
        "platform": training.platform,
        "budget_of_an_episode_picodollars": training.budget_picodollars,
    }


def exported(version: Version) -> dict[str, Any]:
    """A version as JSON, with its scaling policy and weights in the form that a job's spec takes."""
    policy = version.training.parsed_spec.policy(version.weights, explore=False)
    return {"schema_version": 1, **described(version), "scaling": policy.model_dump(mode="json")}
