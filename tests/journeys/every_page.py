"""Every page there is to look at, by name, over made-up rows in every state: for pictures and for axe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from django.contrib.admin.utils import quote
from django.urls import reverse
from playwright.sync_api import Page

from tests.journeys import (
    ab_test_scenes,
    alert_scenes,
    api_scenes,
    bill_scenes,
    budget_scenes,
    cloud_scenes,
    comparing_scenes,
    data_scenes,
    machine_scenes,
    model_scenes,
    opened,
    people_scenes,
    report_scenes,
    resource_scenes,
    scenes,
    scheduler_scenes,
    sharing_scenes,
)
from tests.journeys.page_acts import (
    ask_palette,
    ask_to_delete,
    choose_three,
    invite,
    join,
    keep_a_draft,
    make_link,
    make_token,
    open_alert_menu,
    open_bell,
    open_credentials,
    open_forecast,
    open_keys,
    open_machine_tokens,
    open_operation,
    open_palette,
    renew_key,
    show_archived,
    show_runs,
    submit_nonsense,
    submit_nothing,
    until_drawn,
    until_forecast,
)
from tests.webapp.trackers.rows import make_tracker
from webapp.accounts import services as accounts
from webapp.accounts.models import User
from webapp.alerts import mail_consent
from webapp.alerts.rules import EXAMPLES, add_rule
from webapp.comparing.goal_results import read_finished
from webapp.comparing.predictions import services as predictions
from webapp.connections.models import Connection
from webapp.jobs.models import Job

Act = Callable[[Page], None]


WIDTHS = {"wide": (1280, 900), "narrow": (360, 740)}


THEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")


def pages() -> dict[str, tuple[str, Act | None]]:
    """By name: the address, and what to do there before the picture is taken. Makes what they show."""
    ada = accounts.create_person("ada@example.org", "correct horse battery")
    User.objects.filter(pk=ada.pk).update(is_staff=True)
    bob = accounts.create_person(
        "a.person.with.a.rather.long.address@department.example.org", "correct horse battery"
    )
    project = accounts.ensure_personal_project(ada)
    accounts.join_project(project, bob, "viewer")
    people_scenes.confirm(ada)
    _, invitation = people_scenes.invitations_of(project, ada)
    empty = accounts.create_project("A project with a name as long as people sometimes give to theirs", ada)
    old = people_scenes.archived_project(ada)
    scenes.jobs_in_every_state(project, ada)
    by_name = {job.name: job for job in project.jobs.all()}
    archived, deleted = scenes.jobs_put_away(project, ada)
    scenes.policies_with_films(by_name["Hopper, simulated cloud"])
    report_scenes.as_on_lambda(by_name["Hopper, wide"])
    report_scenes.month_of_costs(project, ada)
    without_machines = machine_scenes.on_machines(project, ada, "Hopper, no machine yet")
    with_machines = machine_scenes.on_machines(project, ada, "Hopper, two machines", "attic", "office")
    budgets = f"/p/{project.slug}/budgets/"
    jobs = f"/p/{project.slug}/jobs/"
    clouds = f"/p/{project.slug}/clouds/"
    connected = cloud_scenes.connections_in_every_state(project, ada)
    cloud_scenes.profiles_in_every_state(project, ada, connected)
    raised = alert_scenes.alerts_in_every_state(project, ada, by_name)
    api_scenes.tokens_in_every_state(project, ada)
    make_tracker(project)
    for text in EXAMPLES:
        add_rule(project=project, user=ada, text=text)
    alerts = f"/p/{project.slug}/alerts/"
    live = f"{jobs}{by_name['Hopper, simulated cloud'].pk}/"
    comparisons = comparing_scenes.comparisons(project, ada)
    over = project.jobs.get(pk=comparisons["runs-job"].split("/")[-2])
    bill_scenes.bills_of(by_name["Hopper, simulated cloud"], by_name["Cart pole, first try"], over)
    read_finished()
    predict_and_apply(by_name["Hopper, simulated cloud"])
    ab_tests = ab_test_scenes.tests_in_every_state(project, ada)
    on_lambda = resource_scenes.functions_kept_ready(connected["ready"])
    scheduler_scenes.surfaces_of(by_name["Hopper, simulated cloud"])
    trained = scheduler_scenes.schedulers_in_every_state(project, ada)
    schedulers = f"/p/{project.slug}/schedulers/"
    tables = data_scenes.data_sets_in_every_state(project)
    model = f"{jobs}{model_scenes.trained_model_of(project).pk}/"
    data = f"/p/{project.slug}/data/"
    scheduler = trained["done"].version.scheduler_id
    month = budget_scenes.budgets_of(
        project, ada, by_name["Hopper, simulated cloud"], by_name["Hopper, wide"]
    )
    people_scenes.budget_of_person(project, ada)
    sides = [f"group_{group.pk}" for group in project.job_groups.filter(name__startswith="Hopper with")]
    shared = sharing_scenes.shared_pages(project, ada, by_name["Hopper, simulated cloud"], sides)
    return {
        "overview": (f"/p/{project.slug}/", None),
        "overview-first": (f"/p/{empty.slug}/", None),
        "palette": (jobs, open_palette),
        "palette-search": (jobs, ask_palette),
        "keys": (jobs, open_keys),
        "find": (f"/p/{project.slug}/find/?q=hopper", None),
        "budgets": (budgets, None),
        "budgets-none": (f"/p/{empty.slug}/budgets/", None),
        "budget-new": (f"{budgets}new/", None),
        "budget-change": (f"{budgets}{month.pk}/", None),
        "list": (jobs, None),
        **{name: (path, None) for name, path in comparisons.items()},
        **{name: (path, None) for name, path in ab_tests.items()},
        "ab-tests-none": (f"/p/{empty.slug}/ab-tests/", None),
        "runs-chosen": (jobs, choose_three),
        "runs-columns": (jobs, lambda page: page.click("summary:has-text('Columns')")),
        "runs-help": (jobs, lambda page: page.click("summary:has-text('Search help')")),
        "sweep-points": (comparisons["sweep-new"], show_runs),
        "runs-unfolded": (jobs, lambda page: page.click("a[data-unfold] >> nth=0")),
        "goals": (f"/p/{project.slug}/goals/?subject=Hopper-v5", None),
        "goals-none": (f"/p/{empty.slug}/goals/", None),
        "groups": (f"/p/{project.slug}/groups/", None),
        "groups-none": (f"/p/{empty.slug}/groups/", None),
        "list-empty": (f"/p/{empty.slug}/jobs/", None),
        "form": (f"{jobs}new/?preset=hopper-simulated", until_forecast),
        "form-model": (f"{jobs}new/?preset=siren-digits", until_forecast),
        "form-local": (f"{jobs}new/?preset=hopper", until_forecast),
        "form-forecast": (f"{jobs}new/?preset=hopper-simulated", open_forecast),
        "form-errors": (f"{jobs}new/?preset=cartpole", submit_nonsense),
        "form-draft": (f"{jobs}new/?preset=cartpole", keep_a_draft),
        "form-fork": (f"{jobs}new/?fork={live.split('/')[-2]}", until_forecast),
        "job-running": (live, until_drawn),
        "job-what-if": (f"{live}what-if/", None),
        "job-what-if-over": (f"{comparisons['runs-job']}what-if/", None),
        "job-actors": (f"{live}actors/", None),
        "job-events": (f"{live}events/?rounds=1", None),
        "job-logs": (f"{live}logs/", None),
        "job-cost": (f"{live}cost/", None),
        "job-cost-over": (f"{comparisons['runs-job']}cost/", None),
        "job-bill-local": (f"{jobs}{by_name['Cart pole, first try'].pk}/cost/", None),
        "job-bill-none": (f"{jobs}{by_name['Cart pole, seed 9'].pk}/cost/", None),
        "numbers": (f"/p/{project.slug}/numbers/lambda/starling-stack/", None),
        "job-spec": (f"{live}spec/", None),
        "job-policy": (f"{live}checkpoints/", None),
        "model-charts": (model, until_drawn),
        "model-judged": (f"{model}checkpoints/", None),
        "job-budget": (f"{jobs}{by_name['Hopper, wide'].pk}/", until_drawn),
        "job-resources": (f"{jobs}{on_lambda.pk}/", None),
        "job-archived": (f"{jobs}{archived.pk}/", ask_to_delete),
        "job-deleted": (f"{jobs}{deleted.pk}/", None),
        "list-archived": (f"{jobs}?q=is:archived", choose_three),
        "job-queued": (f"{jobs}{by_name['Cart pole, seed 9'].pk}/", None),
        "schedulers": (schedulers, None),
        "schedulers-none": (f"/p/{empty.slug}/schedulers/", None),
        "schedulers-new": (f"{schedulers}new/?begin_with={scheduler}.1", None),
        "schedulers-one": (f"{schedulers}{scheduler}/", None),
        "schedulers-training": (f"{schedulers}trainings/{trained['running'].pk}/", None),
        "schedulers-failed": (f"{schedulers}trainings/{trained['failed'].pk}/", None),
        "schedulers-siren": (f"{schedulers}{trained['siren'].version.scheduler_id}/", None),
        "schedulers-siren-training": (f"{schedulers}trainings/{trained['siren'].pk}/", None),
        "schedulers-siren-new": (f"{schedulers}new/?workload=siren-digits", None),
        "schedulers-job": (f"{jobs}new/?preset=hopper-minionsrl", None),
        "data": (data, None),
        "data-none": (f"/p/{empty.slug}/data/", None),
        "data-choosing": (f"{data}{tables['choosing'].pk}/", None),
        "data-choosing-errors": (f"{data}{tables['choosing'].pk}/", submit_nothing),
        "data-ready": (f"{data}{tables['ready'].pk}/", None),
        "data-form": (f"{jobs}new/?data={tables['ready'].manifest}", until_forecast),
        "data-reading": (f"{data}{tables['reading'].pk}/", None),
        "data-failed": (f"{data}{tables['failed'].pk}/", None),
        "clouds": (clouds, None),
        "clouds-empty": (f"/p/{empty.slug}/clouds/", None),
        "clouds-new": (f"{clouds}new/aws_role/", None),
        "clouds-new-errors": (f"{clouds}new/azure_principal/", submit_nothing),
        "clouds-role": (f"{clouds}{connected['fresh'].pk}/", None),
        "clouds-azure": (f"{clouds}{connected['azure'].pk}/", None),
        "clouds-ready": (f"{clouds}{connected['ready'].pk}/", None),
        "clouds-missing": (f"{clouds}{connected['missing'].pk}/", open_credentials),
        "clouds-profile": (f"{clouds}{connected['ready'].pk}/profile/", None),
        "clouds-profile-none": (f"{clouds}{connected['fresh'].pk}/profile/", None),
        "clouds-profile-failed": (f"{clouds}{connected['missing'].pk}/profile/", None),
        "clouds-profile-simulated": (f"{clouds}simulated/profile/", None),
        "alerts": (alerts, None),
        "alerts-bell": (jobs, open_bell),
        "alerts-bell-empty": (f"/p/{empty.slug}/jobs/", open_bell),
        "alerts-menu": (alerts, open_alert_menu),
        "alerts-empty": (f"/p/{empty.slug}/alerts/", None),
        "alerts-rules": (f"{alerts}rules/", None),
        "alerts-rules-none": (f"/p/{empty.slug}/alerts/rules/", None),
        "alerts-channels": (f"{alerts}channels/", None),
        "alerts-channel": (f"{alerts}channels/{raised['failing'].pk}/", None),
        "alerts-channel-mail": (f"{alerts}channels/{raised['mail'].pk}/", None),
        "alerts-consent": (mail_consent.path_for(mail_consent.consents_of(project.pk)[-1]), None),
        "alerts-channel-new": (f"{alerts}channels/new/webhook/", None),
        "alerts-channel-key": (f"{alerts}channels/{raised['failing'].pk}/", renew_key),
        "trackers": (f"/p/{project.slug}/trackers/", None),
        "trackers-none": (f"/p/{empty.slug}/trackers/", None),
        "trackers-mlflow": (f"/p/{project.slug}/trackers/mlflow/", None),
        "reports": (f"/p/{project.slug}/reports/?range=last-30-days&prices=actual", None),
        "reports-job": (f"/p/{project.slug}/reports/?range=last-30-days&prices=simulated&by=job", None),
        "reports-empty": (f"/p/{empty.slug}/reports/", None),
        "reports-bills": (f"/p/{project.slug}/reports/bills/?range=last-30-days", None),
        "reports-installation": ("/reports/?range=last-30-days", None),
        "machines-none": (f"{jobs}{without_machines.pk}/", None),
        "machines-some": (f"{jobs}{with_machines.pk}/", open_machine_tokens),
        "machines-join": (f"{jobs}{with_machines.pk}/", join),
        "papers": ("/papers/", None),
        "papers-experiment": ("/papers/learning_mujoco/", None),
        "papers-costs": ("/papers/minionsrl_table2/", None),
        "papers-calculation": ("/papers/nitro_startup/", None),
        "papers-forks": ("/papers/branching/", None),
        "members": (f"/p/{project.slug}/members/", None),
        "members-invited": (f"/p/{project.slug}/members/", invite),
        "projects": ("/projects/", show_archived),
        "project-settings": (f"/p/{project.slug}/settings/", None),
        "project-archived": (f"/p/{old.slug}/settings/", None),
        "join": (invitation, None),
        "link-confirm": (accounts.one_time_sign_in_path(bob), None),
        "account": ("/account/", None),
        "account-email": ("/accounts/email/", None),
        "account-password": ("/accounts/password/change/", None),
        "account-again": ("/accounts/reauthenticate/", None),
        "sign-out": ("/accounts/logout/", None),
        "tokens": ("/account/tokens/", None),
        "tokens-made": ("/account/tokens/", make_token),
        "api": ("/api/", open_operation),
        "links": (f"/p/{project.slug}/links/", None),
        "links-none": (f"/p/{empty.slug}/links/", None),
        "links-job": (f"/p/{project.slug}/links/?of={live.split('/')[-2]}", None),
        "links-made": (f"/p/{project.slug}/links/?of={live.split('/')[-2]}", make_link),
        **{
            name: (path, until_drawn if "job" in name or "embedded" in name else None)
            for name, path in shared.items()
        },
        "missing": ("/nowhere/", None),
        **_admin(by_name["Hopper, simulated cloud"], connected["ready"]),
        **opened.opened(
            base=f"/p/{project.slug}/",
            live=live,
            budget=f"{budgets}{month.pk}/",
            channel=f"{alerts}channels/{raised['failing'].pk}/",
            connection=f"{clouds}{connected['missing'].pk}/",
        ),
    }


def predict_and_apply(job: Job) -> None:
    """The running job keeps a prediction of its end."""
    predictions.apply(
        job=Job.objects.select_related("account").get(pk=job.pk), user=job.created_by, actors=None
    )


def _admin(job: Job, connection: Connection) -> dict[str, tuple[str, Act | None]]:
    """The tables that staff read, and a row of each."""
    rows = {"job": job, "charge": job.account.charges.latest("pk"), "connection": connection}
    shown = {
        "admin": reverse("admin:index"),
        "admin-app": reverse("admin:app_list", args=[job._meta.app_label]),
    }
    for name, row in rows.items():
        table = f"admin:{row._meta.app_label}_{row._meta.model_name}"
        shown[f"admin-{name}s"] = reverse(f"{table}_changelist")
        shown[f"admin-{name}"] = reverse(f"{table}_change", args=[quote(row.pk)])
    return {name: (path, None) for name, path in shown.items()}


GATES = {
    "sign-in": "/accounts/login/",
    "sign-up": "/accounts/signup/",
    "password-reset": "/accounts/password/reset/",
    "password-reset-done": "/accounts/password/reset/done/",
    "password-reset-key": "/accounts/password/reset/key/x-y/",
    "password-reset-over": "/accounts/password/reset/key/done/",
    "confirm-sent": "/accounts/confirm-email/",
    "confirm-refused": "/accounts/confirm-email/nonsense/",
    "inactive": "/accounts/inactive/",
    "link-refused": "/sign-in/nonsense/",
    "invitation-over": "/join/nonsense/",
    "shared-over": "/s/nonsense/",
}
"""What is seen before signing in."""


SAYS_NO = {
    "link-refused": 403,
    "invitation-over": 404,
    "shared-over": 404,
    "missing": 404,
    "job-deleted": 410,
}
"""Pages that say no, with the status they say it with."""
