"""The learning engine against its peers and its own limits, on this machine, now; environment steps a second.

Contestants take turns, each in a process of its own, in steady state: imports, construction and the first rounds are
not counted. Peers run with what was best for them in a short pilot. The limit is measured in the same turns: the bare
environment loop on both cores, then the bare update as the learner does it: pictures on both cores, all else on one.
Load from other processes in the meantime is reported with it.
"""

import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks import peers
from benchmarks.peers.cases import CASES
from rig.figures import Figure

_REPEATS = 3
_PAIRS = 7
_PILOT_S = 120.0
# Torch's threads, and processes that step environments (0: the learner's own).
_SETTINGS: dict[str, tuple[dict[str, int], ...]] = {
    "sb3": ({"threads": 1}, {"threads": 2}, {"threads": 1, "processes": 1}),
    "rllib": ({"threads": 1, "processes": 2}, {"threads": 2, "processes": 2}),
}
_IMPACT = {
    "kind": "impact",
    "epochs": 10,
    "replay_uses": 1,
    "minibatch_size": 256,
    "normalise_observations": True,
    "normalise_rewards": True,
}


@dataclass(frozen=True)
class _Goals:
    """The least that our speed may be over each; RLlib runs only where one is set, as it is slow."""

    sb3: float
    rllib: float | None = None
    limit: float | None = None


_CASES = {
    "hopper": _Goals(sb3=2.0, rllib=2.5, limit=0.8),
    "hopper-64": _Goals(sb3=1.5),
    "humanoid": _Goals(sb3=1.5),
    "space-invaders": _Goals(sb3=1.15, limit=0.8),
}


def measure(*, quick: bool = False) -> Iterator[Figure]:
    """Everything; `quick` takes each turn once."""
    repeats, pairs = (1, 2) if quick else (_REPEATS, _PAIRS)
    overheads: list[float] = []
    for name, goals in _CASES.items():
        yield from case(name, goals, repeats, overheads if name == "hopper" else [])
    efficiency = [peers.run("actor", case="hopper", copies=4, seed=seed) for seed in range(repeats)]
    spread = _spread([one["efficiency"] for one in efficiency])
    yield Figure("actor: body over bare loop and inference", spread["median"], "", at_least=0.95, data=spread)
    in_turn = _spread([one["efficiency_in_turn"] for one in efficiency])
    yield Figure(
        "actor: body over a bare loop that infers", in_turn["median"], "", at_least=0.95, data=in_turn
    )
    # What a rollout's body does beside sampling, plus what a round is longer than its body and its learning.
    beside = max(0.0, 1.0 - in_turn["median"])
    shares = [share + beside * part for share, part in overheads]
    yield Figure(
        "share of a round for weights, encoding, state and scheduling",
        statistics.median(shares),
        "",
        at_most=0.05,
        data=_spread(shares),
    )
    ratios = [two / one for one, two in peers.run("workers", case="hopper", seed=0, pairs=pairs)["pairs"]]
    yield Figure("two workers over one", statistics.median(ratios), "", at_least=1.8, data=_spread(ratios))
    yield from _overlap(repeats)


def case(name: str, goals: _Goals, repeats: int, overheads: list[Any]) -> Iterator[Figure]:
    """Everyone on one recipe, in turns."""
    competing = [peer for peer in _SETTINGS if peer != "rllib" or goals.rllib is not None]
    chosen = {peer: _best_setting(peer, name) for peer in competing}
    turns: dict[str, list[dict[str, Any]]] = {}
    for seed in range(repeats):
        settings = {"case": name, "seed": seed}
        turns.setdefault("ours", []).append(peers.run("ours", **settings))
        turns.setdefault("limit", []).append(peers.run("bare", **settings))
        for peer, setting in chosen.items():
            turns.setdefault(peer, []).append(peers.run(peer, **settings, **setting))
        pipelined = peers.run("ours", loop={"kind": "pipelined"}, **settings)
        turns.setdefault("ours_pipelined", []).append(pipelined)
    ours = turns["ours"]
    for one in ours:
        beside_s = one["round_s"] - one["slowest_rollout_s"] - one["learn_s"]
        overheads.append((beside_s / one["round_s"], one["slowest_rollout_s"] / one["round_s"]))
    speeds = {who: _spread([one["steps_per_s"] for one in taken]) for who, taken in turns.items()}
    own = speeds["ours"]["median"]
    ratios = {who: own / spread["median"] for who, spread in speeds.items()}
    data = {
        "case": name,
        **speeds,
        "ratio_sb3": ratios["sb3"],
        "ratio_rllib": ratios.get("rllib"),
        "share_of_limit": ratios["limit"],
        "settings": chosen,
        "cpu_ms_per_step": {
            who: statistics.median(one["cpu_ms_per_step"] for one in taken)
            for who, taken in turns.items()
            if who != "limit"
        },
        "parts_s": {
            part: statistics.median(one[part] for one in ours)
            for part in ("round_s", "collect_s", "slowest_rollout_s", "update_s", "learn_s")
        },
        "limit_learn_s": statistics.median(one["learn_s"] for one in turns["limit"]),
        "others_busy": max(one["others_busy"] for taken in turns.values() for one in taken),
    }
    yield Figure(f"{name}: environment steps", own, "1/s", data=data)
    yield Figure(f"{name}: over Stable-Baselines3", ratios["sb3"], "×", at_least=goals.sb3)
    if "rllib" in ratios:
        yield Figure(f"{name}: over RLlib", ratios["rllib"], "×", at_least=goals.rllib)
    yield Figure(f"{name}: share of the limit", ratios["limit"], "", at_least=goals.limit)


def _best_setting(peer: str, name: str) -> dict[str, int]:
    """The setting with which `peer` is fastest in a short pilot."""

    def speed(setting: dict[str, int]) -> float:
        rounds = 1 if CASES[name].pictures else 3
        try:
            piloted = peers.run(peer, timeout_s=_PILOT_S, case=name, seed=0, rounds=rounds, **setting)
        except subprocess.TimeoutExpired:
            # Two threads on cores that others use wait for each other most of the time.
            return 0.0
        return float(piloted["steps_per_s"])

    return max(_SETTINGS[peer], key=speed)


def _overlap(repeats: int) -> Iterator[Figure]:
    """Asynchronous IMPACT against synchronous PPO at equal optimiser passes: time for as many steps. Only timing."""
    overlapped = {"algorithm": _IMPACT, "loop": {"kind": "asynchronous"}}
    for where, words, at_most in (
        ({}, "wall time on this machine", 0.9),
        ({"simulated": True, "actors": 8}, "virtual time on the simulated cloud", 0.6),
    ):
        ratios, passes = [], []
        for seed in range(repeats):
            settings = {"case": "hopper", "seed": seed, **where}
            ppo, impact = peers.run("ours", **settings), peers.run("ours", **settings, **overlapped)
            ratios.append(ppo["platform_steps_per_s"] / impact["platform_steps_per_s"])
            passes.append(impact["minibatches"] / ppo["minibatches"])
        yield Figure(
            f"asynchronous IMPACT over synchronous PPO, {words}",
            statistics.median(ratios),
            "×",
            at_most=at_most,
            data={**_spread(ratios), "minibatches_ratio": statistics.median(passes)},
        )


def _spread(values: list[float]) -> dict[str, Any]:
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "repeats": len(values),
    }
