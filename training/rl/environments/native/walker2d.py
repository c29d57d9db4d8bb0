"""Walker2d: healthy while upright."""

from __future__ import annotations

from training.rl.environments.native.runner import Balancer


class Walker2d(Balancer):
    pass
