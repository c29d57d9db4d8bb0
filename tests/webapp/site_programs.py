"""What the API, the command and files say of a site's jobs, compared with their raw rows."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import client as starling
from tests.webapp.api.test_tensorboard import read
from tests.webapp.site_reading import Site, six_digits
from tests.webapp.walked_site import Truth, in_score, in_usd
from webapp.alerts.text import end_sentence
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job
from webapp.money.amounts import exact_usd


def walk_api(site: Site) -> None:
    listed = {one["id"]: one for one in site.call("/jobs?limit=100")["results"]}
    for job in site.jobs:
        truth, costs = site.truths[job.pk], site.call(f"/jobs/{job.pk}/cost")
        for place, found in (("API", site.call(f"/jobs/{job.pk}")), ("API's list", listed[job.pk])):
            for quantity, name, expected in (
                ("return", "leading_score", truth.score),
                ("its word", "scored_by", truth.basis),
                ("training", "episode_return_mean", truth.training),
                ("evaluated", "evaluation_return_mean", truth.evaluated),
                ("steps", "env_steps", truth.steps),
                ("rounds", "round_no", truth.rounds),
                ("time", "platform_s", truth.time_s),
                ("spent", "spent_usd", exact_usd(truth.spent)),
            ):
                site.walk.see(place, quantity, job.pk, found[name], expected)
        site.walk.see("API, cost", "spent", job.pk, costs["total_usd"], exact_usd(truth.spent))
        evaluations = site.call(f"/jobs/{job.pk}/evaluations")
        last = evaluations[-1]["return_mean"] if evaluations else None
        site.walk.see("API, evaluations", "evaluated", job.pk, last, truth.evaluated)
        rounds = site.call(f"/jobs/{job.pk}/rounds?limit=100")["results"]
        steps = rounds[-1]["report"]["total_env_steps"] if rounds else 0
        site.walk.see("API, rounds", "steps", job.pk, steps, truth.steps)
        site.walk.see("TensorBoard", "all", job.pk, _tensorboard(site, job), _in_tensorboard(truth))
        if job.observed == "succeeded":
            word = "evaluated" if truth.basis == "evaluation" else "training"
            name = "loss" if truth.decimals == 4 else "return"
            score = f"{word} {name} of {in_score(truth.score, truth.decimals)}."
            site.walk.see("alert", "return", job.pk, score in end_sentence(job), True)


def _tensorboard(site: Site, job: Job) -> tuple[Any, ...]:
    last: dict[str, float] = {}
    step = 0
    for event in list(read(site.file(f"jobs/{job.pk}/tensorboard")))[1:]:
        step = event.step
        last |= {value.tag: value.simple_value for value in event.summary.value}
    names = ("rollout/ep_rew_mean", "eval/mean_reward", "cost/spent_usd")
    return (step, *(None if name not in last else float(f"{last[name]:.5g}") for name in names))


def _in_tensorboard(truth: Truth) -> tuple[Any, ...]:
    spent = truth.spent / 1e12 if truth.rounds else None
    values = (truth.training, truth.evaluated, spent)
    return (truth.steps, *(None if one is None else float(f"{one:.5g}") for one in values))


def walk_command(site: Site, printed: Callable[..., str]) -> None:
    listed = {line.split()[0]: line for line in printed("jobs", "list", "--limit", "200").splitlines()[1:]}
    for job in site.jobs:
        truth = site.truths[job.pk]
        shown = {
            line.split()[0]: line.split(maxsplit=1)[1].strip()
            for line in printed("jobs", "show", job.pk).splitlines()
            if len(line.split(maxsplit=1)) > 1
        }
        name = "loss" if truth.decimals == 4 else "return"
        progress = "samples" if truth.decimals == 4 else "steps"
        site.walk.see("command", "return", job.pk, shown[name], _number(truth.score))
        site.walk.see("command", "training", job.pk, shown["training"], _number(truth.training))
        site.walk.see("command", "evaluated", job.pk, shown["evaluated"], _number(truth.evaluated))
        site.walk.see("command", "steps", job.pk, shown[progress], f"{truth.steps:,}")
        site.walk.see("command", "spent", job.pk, shown["spent"], in_usd(truth.spent))
        site.walk.see("command's list", "return", job.pk, f" {_number(truth.score)} " in listed[job.pk], True)
        site.walk.see("command's list", "spent", job.pk, f" {in_usd(truth.spent)} " in listed[job.pk], True)
        run = starling.open_run(job.pk)
        site.walk.see(
            "client", "spent", job.pk, exact_usd(int(run.spent_usd * 10**12)), exact_usd(truth.spent)
        )
        if truth.score is not None:
            word = "evaluated" if truth.basis == "evaluation" else "training"
            site.walk.see("client", "return", job.pk, f" {word} {name} {truth.score:,.4g} " in str(run), True)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


# Files


def walk_reports(site: Site) -> None:
    day = SYSTEM_CLOCK.now().date()
    for prices in ("actual", "simulated"):
        expected = {
            job.pk: site.truths[job.pk].spent
            for job in site.jobs
            if (job.unreal or "actual") == prices and site.truths[job.pk].spent
        }
        query = f"from={day}&to={day}&by=job&prices={prices}"
        costs = site.call(f"/costs?first_day={day}&last_day={day}&by=job&prices={prices}")
        for row in costs["rows"]:
            site.walk.see("API, costs", "spent", row["key"], row["cost_usd"], exact_usd(expected[row["key"]]))
        total = exact_usd(sum(expected.values()))
        site.walk.see("API, costs", "total", prices, costs["total_usd"], total)
        table = csv.DictReader(io.StringIO(site.file(f"reports/file?{query}&format=csv").decode("utf-8-sig")))
        found = {row["job id"]: row["cost [USD]"] for row in table if row["job id"]}
        for pk, spent in expected.items():
            site.walk.see("CSV", "spent", pk, found.get(pk), exact_usd(spent))
        document = json.loads(site.file(f"reports/file?{query}&format=json"))
        for row in document["rows"]:
            site.walk.see("JSON", "spent", row["job_id"], row["cost_usd"], exact_usd(expected[row["job_id"]]))
        for pk, usd in _workbook(site.file(f"reports/file?{query}&format=xlsx"), set(expected)):
            site.walk.see("XLSX", "spent", pk, round(usd, 9), round(expected[pk] / 1e12, 9))
        focus = csv.DictReader(
            io.StringIO(site.file(f"reports/file?{query}&format=focus").decode("utf-8-sig"))
        )
        for row in focus:
            truth = site.truths[row["x_JobId"]]
            site.walk.see(
                "FOCUS", "return", row["x_JobId"], float(row["x_MeanReturn"]), six_digits(truth.score or 0.0)
            )
            site.walk.see("FOCUS", "its word", row["x_JobId"], row["x_ScoredBy"], truth.basis)
            site.walk.see("FOCUS", "steps", row["x_JobId"], int(row["x_EnvSteps"]), truth.steps)


def _workbook(content: bytes, ids: set[str]) -> Iterator[tuple[str, float]]:
    """The cost of each job on the first sheet: the cell right of the job's id that has it as a number."""
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    for row in re.findall(r"<row [^>]*>(.*?)</row>", sheet, re.DOTALL):
        texts = set(re.findall(r"<t[^>]*>(.*?)</t>", row)) & ids
        numbers = [float(value) for value in re.findall(r'<c r="[A-Z]+\d+"(?: s="\d+")?><v>(.*?)</v>', row)]
        if texts:
            yield texts.pop(), numbers[1]
