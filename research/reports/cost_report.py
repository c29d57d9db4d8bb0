"""The part of a report that is about money and time: verdicts of contests, what each arm cost, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cloud.timing.forecasting.explanation import figure_of
from research.branching import Branching
from research.claims import (
    LABELS,
    Better,
    Cheaper,
    Claim,
    Higher,
    HigherInTime,
    NotWorse,
    RanksForks,
    Repeatable,
    Sooner,
    against_in,
    environments_in,
)
from research.experiment import Cell, Experiment
from research.pricing_targets import PRICING_TARGETS
from research.reports.break_even import price_sentence, time_sentence
from research.reports.clock_comparison import judge_seconds
from research.reports.cost_comparison import CostComparisons
from research.reports.fork_prediction import forks_of, judge_forks
from research.reports.judging import Judgement, corrected, part_sentence
from research.reports.outcomes import Summary, decline_sentence, training_sentence
from research.reports.paired_runs import Runs
from research.reports.repeatability import is_about_r, judge_repeatability, stored_reliability, testable_price
from research.reports.return_comparison import (
    judge_final_returns,
    judge_not_worse,
    judge_returns_in_time,
)
from research.reports.run_cost import PricedRun
from research.reports.verdicts import ClaimVerdict
from research.runs.run_file import run_file
from research.statistics import holm
from webapp.comparing.papers.figures import RESULTS


def priced_runs(experiment: Experiment, folder: Path, summaries: Sequence[Summary]) -> Runs:
    """Complete runs with a record of their work, by arm and environment, then by seed."""
    priced: dict[tuple[str, str], dict[int, PricedRun]] = {}
    for summary in summaries if experiment.pricing_targets else ():
        for outcome in summary.done:
            file = run_file(experiment, folder, outcome.cell)
            if file.has_work:
                place = priced.setdefault((summary.arm, summary.environment), {})
                place[outcome.cell.seed] = PricedRun(outcome, file.segments)
    return priced


def cost_verdicts(
    experiment: Experiment, summaries: Sequence[Summary], runs: Runs, *, draws: int
) -> list[ClaimVerdict]:
    """One for each claim about money, time, final returns or curvature, in their order.

    All but the primary one are corrected for being many.
    """
    comparisons = CostComparisons(runs, experiment.targets, experiment.training_targets)
    claims = [one for one in experiment.claims if isinstance(one, _JUDGED)]
    alone = [_judgement(one, comparisons, summaries) for one in claims]
    secondary = [place for place, one in enumerate(claims) if one is not experiment.primary]
    for place, one in zip(secondary, corrected([alone[place] for place in secondary]), strict=True):
        alone[place] = one
    price = testable_price(RESULTS)
    verdicts = []
    for claim, judgement in zip(claims, alone, strict=True):
        if price and isinstance(claim, Cheaper | Higher | Better | RanksForks) and is_about_r(claim):
            reason = " ".join(filter(None, (price, judgement.reason)))
            judgement = replace(judgement, reason=reason)
        if isinstance(claim, Higher | HigherInTime | NotWorse):
            both = (claim.arm, *against_in(claim))
            decline = decline_sentence(both, environments_in(claim), summaries)
            training = ""
            if not isinstance(claim, HigherInTime):
                training = training_sentence(both, environments_in(claim), summaries)
            said = (decline, training, judgement.reason)
            judgement = replace(judgement, reason=" ".join(filter(None, said)))
        figures = judgement.as_dict()
        if isinstance(claim, Cheaper | Sooner) and judgement.word == "does not hold":
            turning = _turning_sentence(experiment, claim, runs)
            judgement = replace(judgement, reason=" ".join(filter(None, (judgement.reason, turning))))
        if isinstance(claim, Cheaper | Higher | HigherInTime | Sooner):
            figures["by_environment"] = _by_environment(comparisons, summaries, claim)
        if isinstance(claim, Cheaper) and (claim.primary or claim.over_draws):
            figures["over_draws"] = comparisons.judge_over_draws(claim, draws)
        if isinstance(claim, RanksForks | Repeatable):
            parts = {
                "kind": "foretells" if isinstance(claim, RanksForks) else "repeatable",
                "environments": [claim.environment],
                "ours": "R",
                "repeats": list(claim.repeats),
            }
        else:
            parts = _claim_parts(experiment, claim, judgement)
        part = part_sentence(judgement.seeds, _declared_seeds(claim, summaries))
        said = (late_sentence(claim), part, judgement.reason)
        judgement = replace(judgement, reason=" ".join(filter(None, said)))
        sentence = _sentence(experiment, claim, judgement)
        verdicts.append(_verdict(sentence, judgement, claim, figures, parts))
    return verdicts


def late_sentence(claim: Claim) -> str:
    """Say that a claim was declared after the first runs."""
    declared = getattr(claim, "declared", "")
    return f"It was declared {declared}." if declared else ""


def _turning_sentence(experiment: Experiment, claim: Cheaper | Sooner, runs: Runs) -> str:
    """Say what would turn a claim of learners that compute gradients against a synchronous one, by one seed's runs.
    Empty for other claims.
    """
    (environment, *more), (against, *others) = claim.environments, claim.against
    places = experiment.priced_at(claim.arm, environment)
    sides = [runs.get((arm, environment), {}) for arm in (claim.arm, against)]
    seeds = sorted(sides[0].keys() & sides[1].keys())
    if (
        more
        or others
        or len(places) != 1
        or not seeds
        or not _is_synchronous(experiment, against, environment)
    ):
        return ""
    ours, theirs = (side[seeds[0]] for side in sides)
    if isinstance(claim, Sooner):
        goals = [1.0] if claim.paper_value is None else [1.0, claim.paper_value]
        return "" if claim.startup else time_sentence(ours, theirs, places[0], goals)
    if claim.measure == "seconds" or claim.at != claim.against_at:
        return ""
    return price_sentence(ours, theirs, places[0])


def _is_synchronous(experiment: Experiment, arm: str, environment: str) -> bool:
    setting = next(one for one in experiment.settings if one.environment == environment)
    return (
        experiment.spec(Cell(arm, environment, setting.seeds[0])).training.loop.collects == "before learning"
    )


def _declared_seeds(claim: _Judged, summaries: Sequence[Summary]) -> int:
    """Of the claim's environment with the most of them."""
    return max(
        (
            summary.planned
            for summary in summaries
            if summary.arm == claim.arm and summary.environment in environments_in(claim)
        ),
        default=0,
    )


# Samples and products that R was measured from in the forks.
_MEASURED_FROM = (256, 20)
_Judged = Cheaper | Higher | HigherInTime | NotWorse | Sooner | Better | RanksForks | Repeatable
_JUDGED = (Cheaper, Higher, HigherInTime, NotWorse, Sooner, Better, RanksForks, Repeatable)


def _judgement(claim: _Judged, comparisons: CostComparisons, summaries: Sequence[Summary]) -> Judgement:
    if isinstance(claim, Cheaper):
        return comparisons.cheaper(claim)
    if isinstance(claim, Better):
        return comparisons.better(claim)
    if isinstance(claim, Higher):
        return judge_final_returns(claim, summaries)
    if isinstance(claim, HigherInTime):
        return judge_returns_in_time(claim, summaries)
    if isinstance(claim, NotWorse):
        return judge_not_worse(claim, summaries)
    if isinstance(claim, Sooner):
        return judge_seconds(claim, summaries)
    if isinstance(claim, Repeatable):
        return judge_repeatability(claim, summaries)[0]
    outcomes = [
        outcome
        for summary in summaries
        if (summary.arm, summary.environment) == (claim.arm, claim.environment)
        for outcome in summary.done
    ]
    return judge_forks(
        [forks_of(outcome.rows, later=claim.later) for outcome in outcomes],
        r_reliability=stored_reliability(RESULTS, claim.environment, _MEASURED_FROM),
    )


def _sentence(experiment: Experiment, claim: _Judged, judgement: Judgement) -> str:
    if isinstance(claim, Cheaper):
        return _cheaper_sentence(experiment, claim, judgement)
    if isinstance(claim, Better):
        return _better_sentence(experiment, claim, judgement)
    if isinstance(claim, Higher):
        ours, theirs = (experiment.arm(arm).title for arm in (claim.arm, *claim.against))
        over = ", ".join(claim.environments)
        how = f"{ours} and {theirs} end alike" if claim.alike else f"{ours} ends higher than {theirs}"
        return f"Final return on {over}: {how} (ratio {'1' if claim.alike else 'above 1'})."
    if isinstance(claim, HigherInTime):
        ours, theirs = (experiment.arm(arm).title for arm in (claim.arm, *claim.against))
        over = ", ".join(claim.environments)
        how = f"{ours} and {theirs} are alike" if claim.alike else f"{ours} is higher than {theirs}"
        return (
            f"Return on {over} in the time that the quicker side takes for all its rounds, without the start of"
            f" machines: {how} (ratio {'1' if claim.alike else 'above 1'})."
        )
    if isinstance(claim, NotWorse):
        ours, theirs = (experiment.arm(arm).title for arm in (claim.arm, claim.against))
        return (
            f"{ours} is not worse than {theirs} on {claim.environment}: the ratio of IQMs is at least"
            f" {claim.margin:g}."
        )
    if isinstance(claim, Sooner):
        ours, theirs = (experiment.arm(arm).title for arm in (claim.arm, *claim.against))
        over = ", ".join(claim.environments)
        how = f"{ours} and {theirs} take as long" if claim.alike else f"{ours} is done sooner than {theirs}"
        start = "" if claim.startup else ", without the start of machines"
        return f"Seconds for all rounds on {over}{start}: {how} (ratio {'1' if claim.alike else 'below 1'})."
    if isinstance(claim, Repeatable):
        return (
            f"On {claim.environment}, R measured twice has a reliability of {claim.least:g} or more, for at most"
            f" {100 * claim.share:.0f} % of a round."
        )
    study = experiment.arm(claim.arm).study
    later = f" {study.further} rounds later" if claim.later and isinstance(study, Branching) else ""
    return (
        f"On {claim.environment}, the lower R is, the more additional actors bring{later}: Spearman's correlation of R"
        " and gain, given the round, is below 0."
    )


def _claim_parts(
    experiment: Experiment,
    claim: Cheaper | Higher | HigherInTime | NotWorse | Sooner | Better,
    judgement: Judgement,
) -> dict[str, Any]:
    """The claim in parts."""
    names = {arm.name: arm.title for arm in experiment.arms}
    several = [names[one] for one in against_in(claim)]
    best = f"{names.get(judgement.against, '')}, the best of {len(several)} on other seeds"
    if judgement.against not in names:
        best = f"the best of {', '.join(several)}"
    parts: dict[str, Any] = {
        "kind": claim.kind,
        "environments": list(environments_in(claim)),
        "ours": names[claim.arm],
        "theirs": several[0] if len(several) == 1 else best,
        "alike": getattr(claim, "alike", False),
        "margin": claim.margin,
        "repeats": list(claim.repeats),
    }
    if isinstance(claim, Cheaper | Better):
        parts |= {
            "at": PRICING_TARGETS[claim.at].title,
            "against_at": PRICING_TARGETS[claim.against_at].title,
            "meter": claim.meter,
        }
    more = {"measure", "accounting", "until", "primary", "paper_value", "startup"}
    if not isinstance(claim, Better):
        parts |= claim.model_dump(include=more & set(type(claim).model_fields))
    return parts


def _by_environment(
    comparisons: CostComparisons,
    summaries: Sequence[Summary],
    claim: Cheaper | Higher | HigherInTime | Sooner,
) -> list[dict[str, Any]]:
    """The claim in each environment alone; p values are Holm's over these."""
    if len(claim.environments) == 1:
        return []
    alone = [
        _judgement(claim.model_copy(update={"environments": (name,)}), comparisons, summaries)
        for name in claim.environments
    ]
    known = [judgement.p_value for judgement in alone if judgement.p_value is not None]
    adjusted = iter(holm(known))
    return [
        {
            "environment": name,
            **judgement.as_dict(),
            "p_holm": next(adjusted) if judgement.p_value is not None else None,
        }
        for name, judgement in zip(claim.environments, corrected(alone), strict=True)
    ]


def draws_sentence(over: dict[str, Any]) -> str:
    """How firm a verdict is, given how well the clouds are known."""
    turned = ", ".join(f"{figure_of(one['name'], one['at'])} ({one['of']})" for one in over["turned_by"][:6])
    return (
        f"Ours is cheaper in {over['cheaper_in']} of {over['draws']} draws of the clouds' numbers;"
        f" {f'turned by {turned}' if turned else 'no single number turns that'}."
    )


def _verdict(
    sentence: str,
    judgement: Judgement,
    claim: _Judged,
    figures: dict[str, Any],
    claim_parts: dict[str, Any],
) -> ClaimVerdict:
    parts = [judgement.reason] if judgement.reason else []
    if judgement.reached:
        parts.append(f"Reached the target, ours and theirs: {judgement.reached}.")
    over = figures.get("over_draws")
    if over:
        parts.append(draws_sentence(over))
    reason = " ".join(parts)
    return ClaimVerdict(
        sentence, judgement.word, reason, LABELS[claim.label], claim.paper, figures, claim_parts
    )


def _cheaper_sentence(experiment: Experiment, claim: Cheaper, judgement: Judgement) -> str:
    ours, theirs, where = _sides(experiment, claim, judgement)
    what = "Seconds" if claim.measure == "seconds" else "Dollars"
    how = " by the papers' own formulas" if claim.accounting == "paper" else ""
    over = ", ".join(claim.environments)
    comparison = f"{ours} and {theirs} need the same" if claim.alike else f"{ours} needs less than {theirs}"
    target = "the target in training" if claim.meter == "training" else "the target"
    until = f"to {target}" if claim.until == "target" else "for all rounds"
    return f"{what} {until}{how} on {over}{where}: {comparison} (ratio {'1' if claim.alike else 'below 1'})."


def _better_sentence(experiment: Experiment, claim: Better, judgement: Judgement) -> str:
    ours, theirs, where = _sides(experiment, claim, judgement)
    over = ", ".join(claim.environments)
    comparison = (
        f"{ours} and {theirs} return the same" if claim.alike else f"{ours} returns more than {theirs}"
    )
    bar = "0" if claim.alike else "above 0"
    meter = ", in training," if claim.meter == "training" else ""
    return f"At equal dollars{meter} on {over}{where}: {comparison} (difference, as a share of the target, {bar})."


def _sides(experiment: Experiment, claim: Cheaper | Better, judgement: Judgement) -> tuple[str, str, str]:
    """Ours, theirs, and the place where both are."""
    names = {arm.name: arm.title for arm in experiment.arms}
    ours = names[claim.arm]
    theirs = names.get(judgement.against, f"the best of {', '.join(names[one] for one in claim.against)}")
    if len(claim.against) > 1 and judgement.against in names:
        theirs = f"{theirs}, which was the best of {len(claim.against)} on other seeds,"
    if claim.at == claim.against_at:
        return ours, theirs, f", {PRICING_TARGETS[claim.at].title}"
    return (
        f"{ours} [{PRICING_TARGETS[claim.at].title}]",
        f"{theirs} [{PRICING_TARGETS[claim.against_at].title}]",
        "",
    )
