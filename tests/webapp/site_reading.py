"""A site of jobs as it is read: by a browser, by a program, and in the words that people read."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from django.test import Client

from tests.webapp.api_callers import ApiCaller
from tests.webapp.walked_site import Truth, Walk, in_score, make_site, mean, truth_of
from webapp.comparing.goal_results import read_finished


class Site:
    """The site and how it is read."""

    def __init__(self, project: Any, jobs: int) -> None:
        self.project = project
        self.user = project.people.get()
        self.jobs = make_site(project, self.user, jobs)
        while read_finished():
            pass
        self.truths = {job.pk: truth_of(job) for job in self.jobs}
        self.browser = Client()
        self.browser.force_login(self.user)
        self.api = ApiCaller(self.user)
        self.walk = Walk()

    def page(self, path: str) -> str:
        answer = self.browser.get(f"/p/{self.project.slug}/{path}")
        assert answer.status_code == 200, path
        content = b"".join(answer) if answer.streaming else answer.content
        return content.decode()

    def file(self, path: str) -> bytes:
        answer = self.browser.get(f"/p/{self.project.slug}/{path}")
        assert answer.status_code == 200, path
        return b"".join(answer) if answer.streaming else answer.content

    def call(self, path: str) -> Any:
        answer = self.api.get(f"/projects/{self.project.slug}{path}")
        assert answer.status_code == 200, (path, answer.content)
        return answer.json()

    def group(self, name: str) -> tuple[Any, list[Truth]]:
        found = self.project.job_groups.get(name=name)
        return found, [self.truths[pk] for pk in found.jobs.order_by("pk").values_list("pk", flat=True)]


def text_of(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def element(page: str, live: str) -> str:
    found = re.search(rf'data-live="{live}"[^>]*>(.*?)</(?:dd|span)>', page, re.DOTALL)
    assert found is not None, live
    return text_of(found[1])


def named(truth: Truth) -> str:
    """A job's score with its word, as lists have it."""
    return ("training " if truth.basis == "training" else "") + in_score(truth.score, truth.decimals)


def of_several(truths: Sequence[Truth]) -> tuple[float | None, str]:
    """What several runs are judged by: evaluations, if each that has begun was evaluated."""
    begun = [one for one in truths if one.rounds]
    if begun and all(one.evaluated is not None for one in begun):
        return mean([one.evaluated for one in begun if one.evaluated is not None]), "evaluation"
    return mean([one.training for one in truths if one.training is not None]), "training"


def six_digits(value: float) -> float:
    return float(f"{value:.6g}")
