"""CartPole, in plain numbers: one number at a time costs Python less than arrays of four."""

from __future__ import annotations

from typing import Any

import numpy as np

from training.rl.environments.native.classic import Classic
from training.rl.environments.native.copy import Row, Seen


class CartPole(Classic):
    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._force, self._tau, self._gravity = base.force_mag, base.tau, base.gravity
        self._total_mass, self._pole_mass = base.total_mass, base.masspole
        self._length, self._pole_mass_length = base.length, base.polemass_length
        self._x_limit, self._angle_limit = base.x_threshold, base.theta_threshold_radians
        self._reward, self._last_reward = (0.0, -1.0) if base._sutton_barto_reward else (1.0, 1.0)

    @staticmethod
    def refusal(base: Any) -> str:
        return "" if base.kinematics_integrator == "euler" else "only Euler's integrator is known"

    def restart(self, seen: Seen) -> None:
        """Draw as Gymnasium's reset does: its episodes are so short that all else in that reset counts."""
        state = self._base.state = self._base.np_random.uniform(-0.05, 0.05, 4)
        self._base.steps_beyond_terminated = None
        seen[...] = state
        self._state, self._moved = tuple(state.tolist()), False

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        x, x_dot, theta, theta_dot = self._state
        force = self._force if action == 1 else -self._force
        # NumPy's, as Gymnasium takes them: those of `math` may differ in the last bit.
        cosine, sine = float(np.cos(theta)), float(np.sin(theta))
        total_mass, pole_mass_length, tau = self._total_mass, self._pole_mass_length, self._tau
        temp = (force + pole_mass_length * (theta_dot * theta_dot) * sine) / total_mass
        theta_acc = (self._gravity * sine - cosine * temp) / (
            self._length * (4.0 / 3.0 - self._pole_mass * (cosine * cosine) / total_mass)
        )
        x_acc = temp - pole_mass_length * theta_acc * cosine / total_mass
        x = x + tau * x_dot
        x_dot = x_dot + tau * x_acc
        theta = theta + tau * theta_dot
        theta_dot = theta_dot + tau * theta_acc
        self._state = (x, x_dot, theta, theta_dot)
        self._moved = True
        seen[0], seen[1], seen[2], seen[3] = self._state
        over: bool = (
            x < -self._x_limit or x > self._x_limit or theta < -self._angle_limit or theta > self._angle_limit
        )
        record[0] = self._last_reward if over else self._reward
        return over
