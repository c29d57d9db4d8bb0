"""Whether R repeats: two fleets, one policy, and what their agreement is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from research.claims import Repeatable
from research.experiment import Cell, find_experiment
from research.reliability import Reliability, measurements
from research.reports.judging import undecided
from research.reports.outcomes import RunOutcome, Summary
from research.reports.repeatability import (
    judge_repeatability,
    noise_of,
    pairs_of,
    reliability,
    settings_table,
    with_next_round,
)
from tests.research.tiny_experiment import CART, TINY

STUDY = Reliability(actors=3, samples=(16, 48), products=(4,))


def test_both_fleets_measure_the_same_policy_and_only_the_first_is_learned_from() -> None:
    training = TINY.spec(Cell("few", CART, 0)).training
    rows = list(measurements(training, STUDY, set()))
    assert [row["round"] for row in rows] == [1, 2, 3, 4, 5]
    for row in rows:
        assert [(one["samples"], one["products"]) for one in row["measured"]] == [(16, 4), (48, 4)]
        assert all(len(one["ratios"]) == 2 and one["measure_s"] > 0 for one in row["measured"])
    # Fleets have chance of their own, and a run that goes on measures what an unbroken one measures.
    assert any(one["ratios"][0] != one["ratios"][1] for row in rows for one in row["measured"])

    def ratios(found: list[dict[str, Any]]) -> list[Any]:
        return [[one["ratios"] for one in row["measured"]] for row in found]

    assert ratios(list(measurements(training, STUDY, {1, 2, 3}))) == ratios(rows[3:])


def made_up(
    true: float,
    noise: float,
    *,
    share: float = 0.01,
    rounds: int = 200,
    seed: int = 0,
    lasting: float = 0.0,
    sizes: tuple[int, ...] = (256,),
) -> list[Any]:
    """Rows in which log R is a trend, the policy's own part, of which so much lasts from round to round, and each
    measurement's noise. Of `sizes`, noise is that of the first, and the others' contain its samples."""
    rng = np.random.default_rng(seed)
    rows = []
    part = rng.standard_normal()
    for k in range(1, rounds + 1):
        part = lasting * part + np.sqrt(1 - lasting**2) * rng.standard_normal()
        drawn = rng.standard_normal((2, sizes[-1] // sizes[0]))
        measured = []
        for size in sizes:
            mean = drawn[:, : size // sizes[0]].mean(axis=1)
            ratios = [float(np.exp(0.02 * k + true * part + noise * one)) for one in mean]
            cost = {"samples": size, "products": 20, "measure_s": share * size / sizes[0]}
            measured.append({**cost, "ratios": ratios})
        rows.append(
            {"kind": "reliability", "round": k, "rollout_s": 0.5, "update_s": 0.5, "measured": measured}
        )
    return rows


@pytest.mark.parametrize(("true", "noise"), [(1.0, 0.0), (1.0, 0.5), (1.0, 1.0), (0.0, 1.0)])
def test_reliability_is_the_policy_s_share_of_the_variance(true: float, noise: float) -> None:
    (pairs,) = pairs_of(made_up(true, noise, rounds=3000)).values()
    assert reliability(pairs) == pytest.approx(true**2 / (true**2 + noise**2), abs=0.05)


def test_noise_is_one_measurement_s_and_what_lasts_is_seen_in_the_next_round() -> None:
    (pairs,) = pairs_of(made_up(1.0, 0.5, rounds=3000, lasting=0.8)).values()
    assert noise_of(pairs) == pytest.approx(0.5, abs=0.03)
    assert with_next_round(pairs) == pytest.approx(0.8 / 1.25, abs=0.05)
    (pairs,) = pairs_of(made_up(0.0, 0.5, rounds=3000)).values()
    assert with_next_round(pairs) == pytest.approx(0.0, abs=0.05)


def test_part_of_a_batch_says_of_the_whole_what_their_samples_share() -> None:
    few, half, every = settings_table(summary([made_up(0.0, 1.0, rounds=3000, sizes=(256, 2048, 4096))]))
    # Nothing is the policy's: a batch's R is the mean of its samples', and another batch knows nothing of it.
    assert every["whole"] == pytest.approx(1.0)
    assert half["whole"] == pytest.approx(np.sqrt(1 / 2), abs=0.05)
    assert few["whole"] == pytest.approx(np.sqrt(1 / 16), abs=0.05)
    assert all(one["reliability"]["value"] == pytest.approx(0.0, abs=0.05) for one in (few, half, every))
    assert every["noise"] == pytest.approx(1 / 4, abs=0.02)


def summary(rows: list[list[Any]]) -> Summary:
    outcomes = tuple(
        RunOutcome(Cell("twice", CART, seed), [*one, {"kind": "end"}]) for seed, one in enumerate(rows)
    )
    return Summary("twice", CART, len(rows), outcomes)


def judged(rows: list[list[Any]]) -> Any:
    return judge_repeatability(Repeatable(arm="twice", environment=CART), [summary(rows)])[0]


def test_a_setting_must_repeat_and_be_affordable() -> None:
    seeds = range(5)
    good = judged([made_up(1.0, 0.2, seed=seed) for seed in seeds])
    noisy = judged([made_up(0.2, 1.0, seed=seed) for seed in seeds])
    dear = judged([made_up(1.0, 0.2, share=0.2, seed=seed) for seed in seeds])
    assert (good.word, noisy.word, dear.word) == ("holds", "does not hold", "does not hold")
    assert "256 samples and 20 products: 1.0 % of a round" in good.reason
    assert judged([made_up(1.0, 0.2)]).word == undecided(1)
    # What the whole batch reaches is the most that any of its parts can.
    sizes = [made_up(0.3, 1.0, seed=seed, sizes=(256, 4096)) for seed in seeds]
    assert judged(sizes).word == "does not hold"
    assert "4,096 samples" in judged(sizes).reason
    # Between 0.6 and 0.9 by the seed: neither is shown.
    mixed = [made_up(1.0, 0.35 if seed % 2 else 0.8, seed=seed) for seed in seeds]
    assert judged(mixed).word == undecided(5)


def test_the_experiment_declares_the_whole_batch_too() -> None:
    experiment = find_experiment("r_reliability")
    study = experiment.arm("twice").study
    assert isinstance(study, Reliability)
    spec = experiment.spec(Cell("twice", "Hopper-v5", 300)).training
    assert max(study.samples) == study.actors * spec.rollout.steps_per_call
