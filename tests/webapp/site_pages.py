"""What the pages of a site say of its jobs, compared with their raw rows."""

from __future__ import annotations

import json
import re

from django.test import Client

from tests.webapp.site_reading import Site, element, named, of_several, six_digits, text_of
from tests.webapp.walked_site import Truth, Walk, in_score, in_seconds, in_usd
from webapp.jobs.models import Job
from webapp.money.amounts import exact_usd
from webapp.sharing.services import make_link

COLUMNS = "return,training,evaluation,steps,rounds,spent,time"
_FINISHED = ("succeeded", "failed")


def walk_list(site: Site) -> None:
    folded = site.page(f"jobs/?columns={COLUMNS}")
    keys = re.findall(r'data-job="seeds-([^"]+)"', folded)
    unfolded = site.page(f"jobs/?columns={COLUMNS}&open={','.join(keys)}")
    for row in re.findall(r'<tr data-job="job_.*?</tr>', unfolded, re.DOTALL):
        job_id = re.findall(r'data-job="([^"]+)"', row)[0]
        truth, cells = site.truths[job_id], _cells(row)
        for name, expected in (
            ("return", named(truth)),
            ("training", in_score(truth.training, truth.decimals)),
            ("evaluation", in_score(truth.evaluated, truth.decimals)),
            ("steps", f"{truth.steps:,}"),
            ("rounds", f"{truth.rounds:,}"),
            ("time", in_seconds(truth.time_s) if truth.rounds else "–"),
        ):
            site.walk.see("list of jobs", name, job_id, cells[name], expected)
        site.walk.see("list of jobs", "spent", job_id, cells["spent"].split(" ")[0], in_usd(truth.spent))
    rows = re.findall(r'<tr data-job="seeds-.*?</tr>', folded, re.DOTALL)
    assert len(rows) == 2
    for row in rows:
        ids = re.findall(r'name="job" value="([^"]+)"', row)[0].split()
        truths, cells = [site.truths[pk] for pk in ids], _cells(row)
        value, basis = of_several(truths)
        expected = ("training " if basis == "training" else "") + in_score(value, 1)
        site.walk.see("row of seeds", "return", "seeds", cells["return"], expected)
        site.walk.see(
            "row of seeds", "steps", "seeds", cells["steps"], f"{sum(one.steps for one in truths):,}"
        )
        spent = in_usd(sum(one.spent for one in truths))
        site.walk.see("row of seeds", "spent", "seeds", cells["spent"].split(" ")[0], spent)


def _cells(row: str) -> dict[str, str]:
    cells = re.findall(r'<td class="column-(\w+)[^>]*>(.*?)</td>', row, re.DOTALL)
    return {name: text_of(cell) for name, cell in cells}


def walk_order_and_search(site: Site) -> None:
    page = site.page("jobs/?columns=return&sort=-return&q=environment:CartPole")
    shown = [
        pk for pk in re.findall(r'<tr data-job="(job_[^"]+)"', page) if site.truths[pk].score is not None
    ]
    scores = [site.truths[pk].score or 0.0 for pk in shown]
    site.walk.see("order of the list", "return", "all", scores, sorted(scores, reverse=True))
    page = site.page("jobs/?columns=return&q=return%3E400")
    found = {pk for ids in re.findall(r'name="job" value="([^"]+)"', page) for pk in ids.split()}
    expected = {pk for pk, truth in site.truths.items() if truth.score is not None and truth.score > 400}
    site.walk.see("search of the list", "return", "all", found, expected)


def walk_job_pages(site: Site) -> None:
    for job in site.jobs:
        truth = site.truths[job.pk]
        page = site.page(f"jobs/{job.pk}/")
        link, path = make_link(project=site.project, user=site.user, of=[job.pk], money=True)
        shared = Client().get(path).content.decode()
        link.delete()
        for place, shown in (("job's page", page), ("shared page", shared)):
            _head(site.walk, place, job.pk, truth, shown)
        stream = json.loads(site.page(f"jobs/{job.pk}/stream?after=0"))[0]
        head, series = stream["job"], stream["series"]
        walk = site.walk
        walk.see("live message", "training", job.pk, head["training_score"], truth.training)
        walk.see("live message", "evaluated", job.pk, head["evaluated_score"], truth.evaluated)
        walk.see("live message", "steps", job.pk, head["total_progress"], truth.steps)
        walk.see("live message", "rounds", job.pk, head["round_no"], truth.rounds)
        walk.see("live message", "time", job.pk, head["platform_s"], truth.time_s)
        walk.see("live message", "spent", job.pk, head["spent_usd"], exact_usd(truth.spent))
        walk.see("charts", "rounds", job.pk, series["rounds"], truth.rounds)
        if truth.rounds:
            walk.see("charts", "steps", job.pk, series["columns"]["steps"][-1], truth.steps)
            walk.see(
                "charts",
                "spent",
                job.pk,
                six_digits(series["columns"]["spent_usd"][-1]),
                six_digits(truth.spent / 1e12),
            )
            walk.see("charts", "time", job.pk, series["columns"]["platform_s"][-1], six_digits(truth.time_s))
        if truth.evaluated is not None:
            walk.see("charts", "evaluated", job.pk, series["evaluations"]["mean"][-1], truth.evaluated)


def _head(walk: Walk, place: str, pk: str, truth: Truth, page: str) -> None:
    walk.see(place, "return", pk, element(page, "return"), in_score(truth.score, truth.decimals))
    judged = element(page, "evaluation")
    walk.see(place, "its word", pk, judged.startswith("evaluated"), truth.basis == "evaluation")
    walk.see(place, "steps", pk, element(page, "steps"), f"{truth.steps:,}")
    walk.see(place, "spent", pk, element(page, "spent"), in_usd(truth.spent))
    walk.see(place, "time", pk, element(page, "time"), in_seconds(truth.time_s) if truth.rounds else "–")
    round_name = "epoch" if truth.decimals == 4 else "round"
    rounds = f"{round_name} {truth.rounds:,}" if truth.rounds else f"no {round_name} yet"
    walk.see(place, "rounds", pk, element(page, "round"), rounds)
    walk.see(place, "target", pk, element(page, "reached"), _reached(truth))


def _reached(truth: Truth) -> str:
    if truth.reached is None:
        return ""
    number, seconds, cost = truth.reached
    goal, round_name = ("2.3000", "epoch") if truth.decimals == 4 else ("475", "round")
    return f"Reached {goal} in {round_name} {number:,}, after {in_seconds(seconds)}, for {in_usd(cost)}."


def walk_overview(site: Site) -> None:
    page = site.page("?now=1")
    for row in re.findall(r"<tr>\s*<td class=\"name-cell\">.*?</tr>", page, re.DOTALL):
        pk = re.findall(r"/jobs/(job_\w+)/", row)[0]
        truth = site.truths[pk]
        found = re.search(r'<span class="return">(.*?)</span></td>', row, re.DOTALL)
        assert found is not None
        site.walk.see("overview", "return", pk, text_of(found[1]), named(truth))
        spent = re.findall(r'spent-cell"><span>(\$[\d.,]+)', row)[0]
        site.walk.see("overview", "spent", pk, spent, in_usd(truth.spent))
    for row in re.findall(r"<li>\s*<span class=\"recent-state\">.*?</li>", page, re.DOTALL):
        pk = re.findall(r"/jobs/(job_\w+)/", row)[0]
        truth, words = site.truths[pk], text_of(row)
        word = "Loss" if truth.decimals == 4 else "Return"
        site.walk.see("overview, ended", "return", pk, f"{word} {named(truth)} " in words, True)
        site.walk.see("overview, ended", "spent", pk, f"Cost {in_usd(truth.spent)}" in words, True)


def walk_groups(site: Site) -> None:
    listed = site.page("groups/")
    for name in ("Judged", "Mixed"):
        group, truths = site.group(name)
        value, basis = of_several(truths)
        row = next(one for one in re.findall(r"<tr>.*?</tr>", listed, re.DOTALL) if f">{name}</a>" in one)
        cells = [text_of(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
        expected = ("training " if basis == "training" else "") + in_score(value, 1)
        site.walk.see("list of groups", "return", name, cells[2], expected)
        spent = in_usd(sum(one.spent for one in truths))
        site.walk.see("list of groups", "spent", name, cells[3].split(" ")[0], spent)
        page = site.page(f"groups/{group.pk}/")
        for pk, row in re.findall(
            r'<tr><th scope="row">[^<]*(?:<input[^>]*>)?<a href="[^"]*/jobs/(job_\w+)/"(.*?)</tr>',
            page,
            re.DOTALL,
        ):
            truth = site.truths[pk]
            cells = [text_of(cell) for cell in re.findall(r'<td class="number">(.*?)</td>', row, re.DOTALL)]
            site.walk.see("group's page", "return", pk, cells[1], named(truth))
            site.walk.see("group's page", "steps", pk, cells[2], f"{truth.steps:,}")
            site.walk.see("group's page", "spent", pk, cells[3].split(" ")[0], in_usd(truth.spent))
        word = (
            "Evaluated return: of the last evaluation" if basis == "evaluation" else "Training return of the"
        )
        site.walk.see("group's page", "its word", name, word in text_of(page), True)


def walk_comparisons(site: Site) -> None:
    started = [job for job in site.jobs if site.truths[job.pk].rounds and job.subject == "CartPole-v1"]
    judged = [job for job in started if site.truths[job.pk].evaluated is not None][:10]
    for jobs in (judged, started[:10]):
        of = "&".join(f"of={job.pk}" for job in jobs)
        answer = site.call(f"/comparison?{of}")
        page = site.page(f"compare/?{of}")
        basis = "evaluation" if jobs is judged else of_several([site.truths[job.pk] for job in jobs])[1]
        site.walk.see("comparison", "its word", "all", answer["scored_by"], basis)
        reference = answer["goal"]["words"] == "the environment's reference"
        for side in answer["sides"]:
            truth = site.truths[side["key"]]
            score = truth.evaluated if basis == "evaluation" else truth.training
            site.walk.see(
                "comparison", "return", side["key"], side["scores"], [] if score is None else [score]
            )
            site.walk.see("comparison", "spent", side["key"], side["cost_usd"], exact_usd(truth.spent))
            site.walk.see("comparison", "time", side["key"], side["time_a_run_s"], truth.time_s)
            if basis == "evaluation" and reference:
                getting = side["getting"]
                found = (getting["reached"], getting["time_s"], getting["usd"])
                expected = (
                    (1, truth.reached[1], truth.reached[2] / 1e12) if truth.reached else (0, None, None)
                )
                site.walk.see("comparison", "target", side["key"], found, expected)
            row = next(
                one for one in re.findall(r"<tr>.*?</tr>", page, re.DOTALL) if f"/jobs/{side['key']}/" in one
            )
            cells = [text_of(cell) for cell in re.findall(r'<td class="number">(.*?)</td>', row, re.DOTALL)]
            site.walk.see(
                "comparison's page", "return", side["key"], cells[1].split(" ")[0], in_score(score, 1)
            )
            site.walk.see(
                "comparison's page", "spent", side["key"], cells[2].split(" ")[0], in_usd(truth.spent)
            )
            site.walk.see("comparison's page", "time", side["key"], cells[3], in_seconds(truth.time_s))
            if basis == "evaluation" and reference:
                words = "1 of 1 run" if truth.reached else "0 of 1 run"
                if truth.reached:
                    words += f" by {in_usd(truth.reached[2])}, {in_seconds(truth.reached[1])}"
                site.walk.see(
                    "comparison's page", "target", side["key"], cells[4].replace(" sim.", ""), words
                )


def walk_board(site: Site) -> None:
    page, board = text_of(site.page("goals/?subject=CartPole-v1")), site.call("/goals?subject=CartPole-v1")
    for row in board["rows"]:
        runs = [job for job in site.jobs if _on_board(job) and job.algorithm == row["algorithm"].lower()] or [
            job for job in site.jobs if _on_board(job) and site.truths[job.pk].rounds
        ]
        runs = [job for job in runs if _algorithm(job) == row["algorithm"].split(" ")[0].lower()]
        reached = sorted(one for job in runs if (one := site.truths[job.pk].reached))
        trained = [job for job in runs if site.truths[job.pk].evaluated is None]
        half = (len(runs) + 1) // 2
        costs, times = sorted(one[2] for one in reached), sorted(one[1] for one in reached)
        name = row["algorithm"]
        site.walk.see("board", "target", name, (row["reached"], row["runs"]), (len(reached), len(runs)))
        site.walk.see("board", "its word", name, row["by_training"], len(trained))
        known = len(reached) >= half
        site.walk.see(
            "board", "dollars", name, row["median_usd"], exact_usd(costs[half - 1]) if known else None
        )
        site.walk.see("board", "time", name, row["median_s"], times[half - 1] if known else None)
        site.walk.see("board's page", "target", name, f"{len(reached)} of {len(runs)}" in page, True)
        if known:
            words = f"{in_usd(costs[half - 1])} {in_seconds(times[half - 1])}"
            site.walk.see("board's page", "time", name, words in page.replace(" sim.", ""), True)


def _on_board(job: Job) -> bool:
    return job.observed in _FINISHED and job.subject == "CartPole-v1"


def _algorithm(job: Job) -> str:
    return str(job.spec["training"]["algorithm"]["kind"])
