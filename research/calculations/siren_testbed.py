"""Siren's test bed: time against cost of functions by an agent, of fixed ones, of servers, and of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from research.calculation import Calculation, ResultTable, Statement
from research.reports.judging import judge
from research.siren_testbed import (
    MORE,
    ROWS,
    SERVERS,
    WORKS,
    Account,
    Rows,
    TestbedArm,
    TrainingEnd,
    WorkName,
    agent_arms,
    at_server,
    fixed_arms,
    kept,
    least_usd,
    library_arm,
    money_of,
    reached,
    read_rows_of,
    server,
    target_of,
    without_start,
)
from research.siren_testbed_runs import can_pay, run_missing
from research.statistics import paired_bootstrap
from training.statistics.few_seeds import Interval

_TITLES: dict[WorkName, str] = {"flights": "click-through on flights", "glyphs": "LeNet on drawn glyphs"}
_ACCOUNTS: dict[Account, str] = {"started": "that has to start", "running": "that already runs"}
_CORES = dict(zip(SERVERS, ("2", "4", "8", "8"), strict=True))
_TWICE = 2.0


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    """Compares trainings whose rows are kept; `papers run` trains those that are missing."""
    rows = read_rows_of(ROWS)
    works = [work for work in WORKS if target_of(work, rows) is not None]
    tables = [_times(works, rows), _figure(works, rows), _learning(works, rows)]
    statements = [_at_all(account, rows) for account in _ACCOUNTS]
    statements += [_against(arm, rows) for work in WORKS for arm in agent_arms(work)]
    statements.append(_against_library(rows))
    return [table for table in tables if table.rows], statements


def _pairs(arm: TestbedArm, rows: Rows) -> tuple[list[TrainingEnd], list[TrainingEnd]]:
    """Return the agent's trainings and its server's, by seed."""
    target = target_of(arm.work, rows)
    ours, theirs = kept(arm, rows), kept(server(arm.work, arm.money), rows)
    money_usd = money_of(arm, rows)
    if target is None or money_usd is None:
        return [], []
    seeds = sorted(set(ours) & set(theirs))
    ends = [reached(ours[seed], target) for seed in seeds]
    # What costs more than the server's bill is not what the money buys.
    within = [
        TrainingEnd(run.epochs, run.seconds, run.usd, reached=run.reached and run.usd <= money_usd)
        for run in ends
    ]
    return within, [at_server(theirs[seed], target, arm.account) for seed in seeds]


def _counted(runs: Sequence[TrainingEnd]) -> list[float]:
    """Return seconds to the loss. A training that did not get there, or not for its money, counts twice."""
    return [run.seconds * (1.0 if run.reached else _TWICE) for run in runs]


def _sooner(interval: Interval, seeds: int, ours: Sequence[TrainingEnd]) -> tuple[str, str]:
    """Judge whether the agent is sooner. It is not where half of its trainings or fewer get there for the money."""
    word, why = judge(interval, 1.0, seeds, less=True)
    if word == "holds" and 2 * sum(run.reached for run in ours) <= len(ours):
        return "does not hold", "Too few of its trainings get there."
    return word, why


def _against(arm: TestbedArm, rows: Rows) -> Statement:
    claim = (
        f"For the bill of one {arm.money} ({_CORES[arm.money]} cores) {_ACCOUNTS[arm.account]} the agent reaches the"
        f" loss sooner: {_TITLES[arm.work]}."
    )
    money_usd, least = money_of(arm, rows), least_usd(arm.work, rows)
    if money_usd is not None and least is not None and not can_pay(arm, rows):
        why = (
            f"The server's bill is ${money_usd:.3g}; the fewest dollars for which any functions get there are"
            f" ${least:.3g}, {least / money_usd:.1f} × as many."
        )
        return Statement(claim, "does not hold", why, "bill")
    ours, theirs = _pairs(arm, rows)
    if not ours:
        return Statement(claim, "open", "Its runs are missing.", "assumed timing")
    interval = paired_bootstrap(np.array(_counted(ours))[:, None], np.array(_counted(theirs))[:, None])
    word, why = _sooner(interval, len(ours), ours)
    got = sum(run.reached for run in ours)
    reason = (
        f"{_change(interval)}; {_got(got, len(ours))}. {_best_fixed(arm.work, money_usd, ours, rows)} {why}"
    )
    return Statement(claim, word, " ".join(reason.split()), "assumed timing")


def _best_fixed(work: WorkName, money_usd: float | None, ours: Sequence[TrainingEnd], rows: Rows) -> str:
    """Return a sentence on the quickest fixed functions of those tried that always got there for the money."""
    target = target_of(work, rows)
    candidates: list[tuple[float, float, str]] = []
    for arm in fixed_arms(work):
        own = [reached(row, target) for row in kept(arm, rows).values()] if target is not None else []
        if own and money_usd is not None and all(run.reached and run.usd <= money_usd for run in own):
            seconds, usd = (
                float(np.mean([getattr(run, part) for run in own])) for part in ("seconds", "usd")
            )
            candidates.append((seconds, usd, arm.name))
    if not candidates:
        return ""
    seconds, usd, name = min(candidates)
    agent_s = float(np.mean([run.seconds for run in ours]))
    return f"The agent takes {agent_s:.3g} s; {name}, fixed, take {seconds:.3g} s and ${usd:.2g}."


def _at_all(account: Account, rows: Rows) -> Statement:
    claim = f"For the bill of a server {_ACCOUNTS[account]}, over both trainings and four servers, the agent is sooner."
    arms = [arm for work in WORKS for arm in agent_arms(work) if arm.account == account]
    cannot = [arm for arm in arms if least_usd(arm.work, rows) is not None and not can_pay(arm, rows)]
    pairs = [_pairs(arm, rows) for arm in arms if arm not in cannot]
    seeds = min((len(ours) for ours, _ in pairs), default=0)
    if len(cannot) == len(arms):
        return Statement(claim, "does not hold", "No functions get there for any of these bills.", "bill")
    if not seeds:
        return Statement(claim, "open", "Its runs are missing.", "assumed timing")
    ours, theirs = (np.array([_counted(pair[side])[:seeds] for pair in pairs]).T for side in (0, 1))
    interval = paired_bootstrap(ours, theirs)
    word, why = _sooner(interval, seeds, [run for mine, _ in pairs for run in mine])
    got, of = sum(run.reached for mine, _ in pairs for run in mine), sum(len(mine) for mine, _ in pairs)
    beside = (
        f" For {len(cannot)} of {len(arms)} bills no functions get there; they are left out."
        if cannot
        else ""
    )
    paper = " The slides have up to −44.3 % against MXNet." if account == "started" else ""
    return Statement(
        claim, word, f"{_change(interval)}; {_got(got, of)}.{beside}{paper} {why}".strip(), "assumed timing"
    )


def _against_library(rows: Rows) -> Statement:
    claim = (
        "On flights, functions by an agent for its bill reach the loss sooner than scikit-learn's SGD on one core of an"
        f" {SERVERS[0]} that has to start."
    )
    target = target_of("flights", rows)
    own = kept(library_arm("flights"), rows)
    agent = TestbedArm("flights", money=SERVERS[0])
    ours, _ = _pairs(agent, rows)
    if target is None or not own or not ours:
        return Statement(claim, "open", "Its runs are missing.", "assumed timing")
    theirs = [reached(own[seed], target) for seed in sorted(own)][: len(ours)]
    interval = paired_bootstrap(
        np.array(_counted(ours[: len(theirs)]))[:, None], np.array(_counted(theirs))[:, None]
    )
    word, why = _sooner(interval, len(theirs), ours)
    running, own_s = (
        float(np.mean([run.seconds for run in arm])) for arm in (map(without_start, theirs), ours)
    )
    after = f"Without its start it takes {running:.3g} s; the agent takes {own_s:.3g} s."
    return Statement(claim, word, f"{_change(interval)}. {after} {why}".strip(), "assumed timing")


def _change(interval: Interval) -> str:
    low, value, high = (100 * (one - 1) for one in (interval.low, interval.value, interval.high))
    return f"{value:+.1f} % of the time [{low:+.1f} %, {high:+.1f} %]".replace("-", "−")


def _got(count: int, of: int) -> str:
    return f"the agent gets there for its money in {count} of {of}"


def _shown(works: Sequence[WorkName], rows: Rows) -> list[tuple[WorkName, str, str, list[TrainingEnd]]]:
    """Return what arms took, with their start: the training, a kind of arm, the arm, and its trainings."""
    found: list[tuple[WorkName, str, str, list[TrainingEnd]]] = []
    for work in works:
        target = target_of(work, rows)
        assert target is not None
        for kind, arms in (
            ("servers", [server(work, sku) for sku in SERVERS]),
            ("fixed functions", fixed_arms(work)),
            ("the agent", [arm for arm in agent_arms(work) if arm.account == "started"]),
            ("scikit-learn", [library_arm(work)]),
        ):
            for arm in arms:
                own = [reached(row, target) for row in kept(arm, rows).values()]
                if own:
                    found.append((work, kind, arm.name, own))
    return found


def _times(works: Sequence[WorkName], rows: Rows) -> ResultTable:
    table_rows: list[tuple[str | float, ...]] = []
    for work, kind, name, own in _shown(works, rows):
        seconds, usd = (float(np.mean([getattr(run, part) for run in own])) for part in ("seconds", "usd"))
        running: tuple[str | float, ...] = ("", "")
        if kind in ("servers", "scikit-learn"):
            warm = [without_start(run) for run in own]
            running = tuple(
                float(np.mean([getattr(run, part) for run in warm])) for part in ("seconds", "usd")
            )
        epochs = float(np.mean([run.epochs for run in own]))
        got = f"{sum(run.reached for run in own)} of {len(own)}"
        table_rows.append((_TITLES[work], name, seconds, usd, *running, epochs, got))
    return ResultTable(
        "Time and dollars to the loss",
        ("training", "arm", "seconds", "$", "seconds, running", "$, running", "epochs", "reached"),
        tuple(table_rows),
        "With the start of machines and functions; beside it, where it is a server, without its start. The loss is"
        f" {100 * (MORE - 1):.0f} % above that of an {SERVERS[0]} after "
        + " and ".join(f"{work.usual_epochs} epochs of {name}" for name, work in WORKS.items())
        + ".",
    )


def _figure(works: Sequence[WorkName], rows: Rows) -> ResultTable:
    found = [
        (
            f"{work}: {kind}",
            1000 * float(np.mean([run.usd for run in own])),
            float(np.mean([run.seconds for run in own])),
        )
        for work, kind, _, own in _shown(works, rows)
        if kind != "scikit-learn"
    ]
    return ResultTable(
        "Time against cost",
        ("arm", "thousandths of a dollar", "seconds"),
        tuple(sorted(found)),
        "Means to the loss, with all starts.",
        drawn=("thousandths of a dollar", "seconds"),
    )


def _learning(works: Sequence[WorkName], rows: Rows) -> ResultTable:
    """Return the scores of agents while they rehearse, means over seeds."""
    points: list[tuple[str | float, ...]] = []
    for work in works:
        for arm in agent_arms(work):
            own = [row["scores"] for row in kept(arm, rows).values()]
            if own and arm.account == "started":
                means = np.mean(np.array(own), axis=0)
                points += [
                    (f"{work}, {arm.money}", 200 * (at + 1), float(mean)) for at, mean in enumerate(means)
                ]
    return ResultTable(
        "The agent's score over its rehearsals",
        ("agent for", "rehearsals", "score"),
        tuple(points),
        "Means of 200 rehearsals and of all seeds. A score is in usual epochs: the time of all epochs, and what is"
        " added or taken away at the end.",
        drawn=("rehearsals", "score"),
    )


CALCULATION = Calculation(
    title="Siren's test bed run again: time against cost, on functions and on servers",
    prepare=run_missing,
    question="For the bill of a server, does an agent that changes functions and memory reach the same loss sooner?",
    oracle=(
        "A server that already runs pays no start, so that for its bill functions should hardly ever be sooner: a core"
        " of a function costs more than one of a server. If they were, a bill or a start would be missing."
    ),
    can_claim=(
        "Two trainings, five seeds. Losses are real; times and dollars are those of the simulated cloud, where a core"
        " of an m4 is as quick as one of a c5, which favours the m4. LeNet learns 6,000 drawn glyphs, not MNIST. The"
        " agent rehearses on four recorded trainings, whose price is not counted. MXNet is not run: our engine takes"
        " its place. The text CNN is not built: the slides name one on movie reviews, without its layers, its data or a"
        " figure of its own."
    ),
    compute=compute,
    beside="Siren: up to 44.3 % less time at the same cost than MXNet on EC2.",
)
