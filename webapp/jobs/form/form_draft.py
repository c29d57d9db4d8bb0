"""A job's form between its page and its draft: drawn from a beginning, filled with what was typed, looked at, kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from webapp.accounts.models import Project
from webapp.jobs import seed_groups, services
from webapp.jobs.form import drafts
from webapp.jobs.form.form_prefill import Beginning, beginning, of_address
from webapp.jobs.form.forms import SpecForm, job_form
from webapp.jobs.form.spec_problems import Problem
from webapp.jobs.launch import checklist, cloud_requirements
from webapp.jobs.launch.scheduler_choice import schedulers
from webapp.jobs.models import Draft
from webapp.jobs.spec import JobSpec


@dataclass
class Sheet:
    """One form: whose it is, what it began with, its draft if it has one, and what was sent of it."""

    project: Project
    user: Any
    begun: Beginning
    draft: Draft | None = None
    sent: Mapping[str, Any] | None = None
    seeds_problem: str = ""

    @classmethod
    def of(
        cls, project: Project, user: Any, query: Mapping[str, Any], sent: Mapping[str, Any] | None = None
    ) -> Sheet:
        """As the form's address asks for it: the person's draft that it names, else a fresh beginning."""
        draft = drafts.draft_in(project, user, query.get("draft", ""))
        begun = beginning(project, query) if draft is None else of_address(project, draft.begun_with)
        return cls(project, user, begun, draft, sent)

    @property
    def address(self) -> str:
        """The part of the form's address that gives this sheet again."""
        return "?" + (f"draft={self.draft.pk}" if self.draft else self.begun.address)

    @property
    def typed(self) -> Any:
        """What was typed: now, or when the draft was saved; None for a fresh form."""
        if self.sent is not None or self.draft is None:
            return self.sent
        return {**self.drawn(None).as_typed(), **self.draft.values}

    @property
    def beside(self) -> dict[str, str]:
        """What the form holds beside the spec's fields."""
        typed = self.typed or {}
        return {
            "seeds": typed.get("seeds", "1"),
            "checkpoint": typed.get("checkpoint", self.begun.chosen_name),
        }

    def form(self, data: Any) -> SpecForm:
        """The form in this project, each field with what it is compared with."""
        form = self.drawn(data)
        if self.begun.compared is not None:
            form.compare_with(self.begun.compared)
        return form

    def drawn(self, data: Any) -> SpecForm:
        """With the project's connections and schedulers, and with what stands against a launch here."""
        return job_form(data, self.begun.start, self._obstacles, *self._offered)

    @cached_property
    def _offered(self) -> tuple[Any, ...]:
        project = self.project
        connected = (cloud_requirements.offered(project), cloud_requirements.none_yet(project))
        return (*connected, schedulers().offered(project), schedulers().none_yet(project))

    def _obstacles(self, spec: JobSpec) -> list[Problem]:
        whole = schedulers().placed(self.project, spec)
        made_from = self.begun.made_from(self.beside["checkpoint"])
        stands = [
            *schedulers().obstacles(self.project, spec),
            *cloud_requirements.obstacles(self.project, spec),
        ]
        stands += made_from.obstacles(spec) if made_from is not None else []
        return [*whole.check_limits(services.limits()), *stands]

    def count(self) -> int:
        """How many seeds; 1 where that is not to be understood, which the page then says."""
        try:
            return seed_groups.seeds_asked(self.beside["seeds"])
        except services.SpecRefused as refusal:
            self.seeds_problem = str(refusal)
            return 1

    def checks(self, form: SpecForm) -> list[checklist.Check]:
        if not isinstance(form.understood, JobSpec):
            return [checklist.fields_row([str(words[0]) for words in form.errors.values()])]
        made_from = self.begun.made_from(self.beside["checkpoint"])
        return checklist.checklist(
            self.project, self.user, form.understood, count=self.count(), made_from=made_from
        )

    def save(self, form: SpecForm) -> Draft:
        """Keep what stands in the form, valid or not; over the draft, if there is one. Raises DraftRefused."""
        return drafts.save_draft(
            project=self.project,
            user=self.user,
            values={**form.as_typed(), **self.beside},
            begun_with=self.begun.address,
            draft=self.draft,
        )
