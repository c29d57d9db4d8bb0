"""A job's form in a project: prefilled, filled with what the user typed, checked and saved as a draft."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from webapp.accounts.models import Project
from webapp.jobs import seed_groups, services
from webapp.jobs.form import drafts
from webapp.jobs.form.form_prefill import StartingPoint, of_address, starting_point
from webapp.jobs.form.forms import SpecForm, job_form
from webapp.jobs.form.spec_problems import Problem
from webapp.jobs.launch import checklist, cloud_requirements
from webapp.jobs.launch.scheduler_choice import schedulers
from webapp.jobs.models import Draft
from webapp.jobs.spec import JobSpec


@dataclass
class FormState:
    """One form: its project and user, its starting point, its draft if any, and the submitted data."""

    project: Project
    user: Any
    begun: StartingPoint
    draft: Draft | None = None
    sent: Mapping[str, Any] | None = None
    seeds_problem: str = ""

    @classmethod
    def of(
        cls, project: Project, user: Any, query: Mapping[str, Any], sent: Mapping[str, Any] | None = None
    ) -> FormState:
        """Return the form that the URL names: the user's draft, else a fresh starting point."""
        draft = drafts.draft_in(project, user, query.get("draft", ""))
        begun = starting_point(project, query) if draft is None else of_address(project, draft.begun_with)
        return cls(project, user, begun, draft, sent)

    @property
    def address(self) -> str:
        """The query part of the form's URL."""
        return "?" + (f"draft={self.draft.pk}" if self.draft else self.begun.address)

    @property
    def typed(self) -> Any:
        """What the user typed, now or when the draft was saved; None for a fresh form."""
        if self.sent is not None or self.draft is None:
            return self.sent
        return {**self.build_form(None).as_typed(), **self.draft.values}

    @property
    def beside(self) -> dict[str, str]:
        """The form's fields beside the spec's."""
        typed = self.typed or {}
        return {
            "seeds": typed.get("seeds", "1"),
            "checkpoint": typed.get("checkpoint", self.begun.chosen_name),
        }

    def form(self, data: Any) -> SpecForm:
        """Return the form in this project, with each field compared with the starting point."""
        form = self.build_form(data)
        if self.begun.compared is not None:
            form.compare_with(self.begun.compared)
        return form

    def build_form(self, data: Any) -> SpecForm:
        """Return the form with the project's connections and schedulers, and with the obstacles to a launch."""
        return job_form(data, self.begun.start, self._obstacles, *self._offered)

    @cached_property
    def _offered(self) -> tuple[Any, ...]:
        project = self.project
        connected = (
            cloud_requirements.list_connections(project),
            cloud_requirements.missing_connection_texts(project),
        )
        return (*connected, schedulers().list_options(project), schedulers().empty_text(project))

    def _obstacles(self, spec: JobSpec) -> list[Problem]:
        complete = schedulers().fill_in_weights(self.project, spec)
        made_from = self.begun.made_from(self.beside["checkpoint"])
        problems = [
            *schedulers().obstacles(self.project, spec),
            *cloud_requirements.obstacles(self.project, spec),
        ]
        problems += made_from.obstacles(spec) if made_from is not None else []
        return [*complete.check_limits(services.limits()), *problems]

    def count(self) -> int:
        """Return the number of seeds; 1 if it is invalid, with `seeds_problem` set."""
        try:
            return seed_groups.parse_seed_count(self.beside["seeds"])
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
        """Save the form's values, valid or not, in the draft if there is one. Raises DraftRefused."""
        return drafts.save_draft(
            project=self.project,
            user=self.user,
            values={**form.as_typed(), **self.beside},
            begun_with=self.begun.address,
            draft=self.draft,
        )
