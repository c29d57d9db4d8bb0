"""How far a curve may still get: the band, and how often it held for stored runs."""

from pathlib import Path

import numpy as np
import pytest

from training.statistics.curve_forecast import CurveBand, predict_score, smoothed

_STEPS = [100.0 * at for at in range(1, 41)]


def test_a_rising_curve_is_expected_to_rise_and_a_flat_one_to_stay() -> None:
    rising = predict_score(_STEPS, [10.0 * at for at in range(40)], 8_000)
    assert rising is not None
    assert rising.p10 < rising.p50 < rising.p90
    assert rising.p50 > 390
    assert predict_score(_STEPS, [7.0] * 40, 8_000) == pytest.approx(CurveBand(7.0, 7.0, 7.0))


def test_what_is_better_when_it_is_lower_is_expected_to_fall() -> None:
    losses = [1000.0 - 10.0 * at for at in range(40)]
    found = predict_score(_STEPS, losses, 8_000, higher_is_better=False)
    assert found is not None
    assert found.p10 > found.p50 > found.p90


def test_a_noisier_curve_has_a_wider_band_and_the_end_itself_none() -> None:
    rng = np.random.default_rng(0)
    calm, noisy = (
        predict_score(_STEPS, list(100 + spread * rng.standard_normal(40)), 8_000) for spread in (1.0, 20.0)
    )
    assert calm is not None
    assert noisy is not None
    assert noisy.p90 - noisy.p10 > 3 * (calm.p90 - calm.p10)
    now = predict_score(_STEPS, [10.0 * at for at in range(40)], 4_000)
    assert now is not None
    assert now.p10 == now.p90 == pytest.approx(float(smoothed([10.0 * at for at in range(40)])[-1]))


def test_too_short_a_curve_says_nothing() -> None:
    assert predict_score(_STEPS[:7], [1.0] * 7, 1_000) is None
    assert predict_score(_STEPS, [1.0] * 40, 40_000) is None


@pytest.mark.slow
def test_the_band_held_for_four_of_five_stored_runs() -> None:
    """From a third, a half and two thirds of each run to its end."""
    from research.runs.archive import cells_in, find_run

    held = []
    for name in ("learning_mujoco", "nitro_rewards"):
        path = Path("research/results") / f"{name}.runs"
        for cell in cells_in(path):
            run = find_run(path, cell)
            assert run is not None
            rows = [row for row in run.rows if row["kind"] == "round" and row.get("episodes")]
            steps, scores = [row["env_steps"] for row in rows], [row["episode_return_mean"] for row in rows]
            for share in (0.34, 0.5, 0.67):
                known = int(share * len(rows))
                band = predict_score(steps[:known], scores[:known], steps[-1]) if known else None
                if band is not None:
                    held.append(band.p10 <= smoothed(scores)[-1] <= band.p90)
    assert len(held) > 100
    assert 0.78 <= np.mean(held) <= 0.95
