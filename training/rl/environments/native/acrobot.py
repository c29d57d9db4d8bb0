"""Acrobot, in plain numbers: its equations of motion and their integration by Runge and Kutta's fourth order."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from training.rl.environments.native.classic import Classic
from training.rl.environments.native.copy import Row, Seen


class Acrobot(Classic):
    def __init__(self, base: Any, first: Any) -> None:
        super().__init__(base, first)
        self._torques, self._step_s = base.AVAIL_TORQUE, base.dt
        self._max_speeds = (base.MAX_VEL_1, base.MAX_VEL_2)
        m1, m2, l1, i = base.LINK_MASS_1, base.LINK_MASS_2, base.LINK_LENGTH_1, base.LINK_MOI
        lc1, lc2, g = base.LINK_COM_POS_1, base.LINK_COM_POS_2, 9.8
        self._m2, self._i, self._lc2_squared = m2, i, lc2**2
        # What each product or sum of Gymnasium's begins with, as far as it is constant.
        self._m1_lc1, self._l1_lc2, self._m2_l1_lc2 = m1 * lc1**2, l1 * lc2, m2 * l1 * lc2
        self._squares, self._twice_l1_lc2, self._twice_m2_l1_lc2 = (
            l1**2 + lc2**2,
            2 * l1 * lc2,
            2 * m2 * l1 * lc2,
        )
        self._m2_lc2_g, self._first_g = m2 * lc2 * g, (m1 * lc1 + m2 * l1) * g
        self._m2_lc2_i = m2 * lc2**2 + i

    @staticmethod
    def refusal(base: Any) -> str:
        if base.torque_noise_max > 0:
            return "its torques are noisy"
        return "" if base.book_or_nips == "book" else "only the book's equations are known"

    def step(self, action: Any, record: Row, seen: Seen) -> bool:
        torque, dt = self._torques[action], self._step_s
        half = dt / 2.0
        state = self._state
        a, b, c, d = state
        a1, b1, c1, d1 = self._slope(a, b, c, d, torque)
        a2, b2, c2, d2 = self._slope(a + half * a1, b + half * b1, c + half * c1, d + half * d1, torque)
        a3, b3, c3, d3 = self._slope(a + half * a2, b + half * b2, c + half * c2, d + half * d2, torque)
        a4, b4, c4, d4 = self._slope(a + dt * a3, b + dt * b3, c + dt * c3, d + dt * d3, torque)
        sixth = dt / 6.0
        angle1, angle2 = a + sixth * (a1 + 2 * a2 + 2 * a3 + a4), b + sixth * (b1 + 2 * b2 + 2 * b3 + b4)
        speed1, speed2 = c + sixth * (c1 + 2 * c2 + 2 * c3 + c4), d + sixth * (d1 + 2 * d2 + 2 * d3 + d4)
        angle1, angle2 = _wrapped(angle1), _wrapped(angle2)
        most1, most2 = self._max_speeds
        speed1, speed2 = min(max(speed1, -most1), most1), min(max(speed2, -most2), most2)
        self._state = (angle1, angle2, speed1, speed2)
        self._moved = True
        # NumPy's, as Gymnasium takes them: those of `math` may differ in the last bit.
        cosine = float(np.cos(angle1))
        seen[0], seen[1], seen[2], seen[3] = cosine, np.sin(angle1), np.cos(angle2), np.sin(angle2)
        seen[4], seen[5] = speed1, speed2
        over = bool(-cosine - float(np.cos(angle2 + angle1)) > 1.0)
        record[0] = -1.0 if not over else 0.0
        return over

    def _slope(
        self, theta1: float, theta2: float, dtheta1: float, dtheta2: float, torque: float
    ) -> tuple[float, float, float, float]:
        """How angles and speeds change: Sutton and Barto's equations, term by term as Gymnasium writes them."""
        cosine2, sine2 = float(np.cos(theta2)), float(np.sin(theta2))
        d1 = self._m1_lc1 + self._m2 * (self._squares + self._twice_l1_lc2 * cosine2) + self._i + self._i
        d2 = self._m2 * (self._lc2_squared + self._l1_lc2 * cosine2) + self._i
        phi2 = self._m2_lc2_g * float(np.cos(theta1 + theta2 - pi / 2.0))
        phi1 = (
            -self._m2_l1_lc2 * dtheta2**2 * sine2
            - self._twice_m2_l1_lc2 * dtheta2 * dtheta1 * sine2
            + self._first_g * float(np.cos(theta1 - pi / 2))
            + phi2
        )
        ddtheta2 = (torque + d2 / d1 * phi1 - self._m2_l1_lc2 * dtheta1**2 * sine2 - phi2) / (
            self._m2_lc2_i - d2**2 / d1
        )
        ddtheta1 = -(d2 * ddtheta2 + phi1) / d1
        return dtheta1, dtheta2, ddtheta1, ddtheta2


def _wrapped(angle: float) -> float:
    """The same angle within ±π."""
    while angle > pi:
        angle = angle - 2 * pi
    while angle < -pi:
        angle = angle + 2 * pi
    return angle
