"""Further packages whose environments may be used: those the operator has enabled, and no others.

A spec names an environment's id, never a module, so no one can have code imported by writing its name in a form. Each
process learns once which packages are enabled (`enable`), and imports them for the first id that it does not
know; importing them registers their environments with Gymnasium.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

_SHIPPED = {"gymnasium", "ale_py"}
"""Packages whose environments every actor has: what is shipped to functions and containers holds these."""

_NEEDED_BY_SHIPPED = {
    "gymnasium.envs.box2d": "box2d",
    "gymnasium.envs.phys2d": "jax",
    "gymnasium.envs.tabular": "jax",
}
"""What some of their environments need, which is not shipped."""

_enabled: list[str] = []
_loaded: set[str] = set()


class PackageMissing(RuntimeError):
    """An enabled package cannot be imported. The message is for the operator."""


def enable(names: Sequence[str]) -> None:
    """From now on these packages' environments may be made in this process. Nothing is imported yet."""
    for name in names:
        if name not in _enabled:
            _enabled.append(name)


def enabled() -> tuple[str, ...]:
    return tuple(_enabled)


def load() -> None:
    """Import the enabled packages, once a process. PackageMissing names one that cannot be."""
    for name in _enabled:
        if name in _loaded:
            continue
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            raise PackageMissing(
                f"the environment package {name!r} is enabled in the settings and cannot be imported: {error}"
            ) from None
        # Packages in the newer style register nothing on import but offer a function for it.
        register = getattr(module, "register_envs", None)
        if callable(register):
            register()
        _loaded.add(name)


def package_of(environment_id: str) -> str:
    """Return the further package that an environment is of or needs; empty for those that every actor has."""
    import gymnasium

    spec = gymnasium.registry.get(environment_id)
    if spec is None or spec.entry_point is None:
        return ""
    entry = spec.entry_point
    module = str(entry.partition(":")[0] if isinstance(entry, str) else entry.__module__)
    package = module.partition(".")[0]
    if package not in _SHIPPED:
        return package
    return next((needed for family, needed in _NEEDED_BY_SHIPPED.items() if module.startswith(family)), "")
