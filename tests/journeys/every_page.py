"""Every page there is to look at, by name, over made-up rows in every state: for pictures and for axe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from django.contrib.admin.utils import quote
from django.urls import Resolver404, URLPattern, URLResolver, get_resolver, resolve, reverse
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
from tests.webapp.trackers.rows import make_tracker
from webapp.accounts import services as accounts
from webapp.accounts.models import User
from webapp.alerts import mail_consent
from webapp.connections.models import Connection
from webapp.jobs.models import Job
from webapp.leaderboard.results import read_finished
from webapp.predictions import services as predictions

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
    _, join = people_scenes.invitations_of(project, ada)
    empty = accounts.create_project("A project with a name as long as people sometimes give to theirs", ada)
    old = people_scenes.archived_project(ada)
    scenes.jobs_in_every_state(project, ada)
    by_name = {job.name: job for job in project.jobs.all()}
    archived, deleted = scenes.jobs_put_away(project, ada)
    scenes.policies_with_films(by_name["Hopper, simulated cloud"])
    report_scenes.as_on_lambda(by_name["Hopper, wide"])
    report_scenes.month_of_costs(project, ada)
    bill_scenes.bills_of(by_name["Hopper, simulated cloud"], by_name["Cart pole, first try"])
    without_machines = machine_scenes.on_machines(project, ada, "Hopper, no machine yet")
    with_machines = machine_scenes.on_machines(project, ada, "Hopper, two machines", "attic", "office")
    budgets = f"/p/{project.slug}/budgets/"
    jobs = f"/p/{project.slug}/jobs/"
    clouds = f"/p/{project.slug}/clouds/"
    connected = cloud_scenes.connections_in_every_state(project, ada)
    cloud_scenes.profiles_in_every_state(project, ada, connected)
    told = alert_scenes.alerts_in_every_state(project, ada, by_name)
    api_scenes.tokens_in_every_state(project, ada)
    make_tracker(project)
    alerts = f"/p/{project.slug}/alerts/"
    live = f"{jobs}{by_name['Hopper, simulated cloud'].pk}/"
    comparisons = comparing_scenes.comparisons(project, ada)
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
        "palette": (jobs, _open_palette),
        "palette-asked": (jobs, _ask_palette),
        "keys": (jobs, _open_keys),
        "find": (f"/p/{project.slug}/find/?q=hopper", None),
        "budgets": (budgets, None),
        "budgets-none": (f"/p/{empty.slug}/budgets/", None),
        "budget-new": (f"{budgets}new/", None),
        "budget-change": (f"{budgets}{month.pk}/", None),
        "list": (jobs, None),
        **{name: (path, None) for name, path in comparisons.items()},
        **{name: (path, None) for name, path in ab_tests.items()},
        "ab-tests-none": (f"/p/{empty.slug}/ab-tests/", None),
        "runs-chosen": (jobs, _choose_three),
        "runs-columns": (jobs, lambda page: page.click("summary:has-text('Columns')")),
        "runs-help": (jobs, lambda page: page.click("summary:has-text('Search help')")),
        "sweep-points": (comparisons["sweep-new"], _show_runs),
        "runs-unfolded": (jobs, lambda page: page.click("a[data-unfold] >> nth=0")),
        "goals": (f"/p/{project.slug}/goals/?subject=Hopper-v5", None),
        "goals-none": (f"/p/{empty.slug}/goals/", None),
        "groups": (f"/p/{project.slug}/groups/", None),
        "groups-none": (f"/p/{empty.slug}/groups/", None),
        "list-empty": (f"/p/{empty.slug}/jobs/", None),
        "form": (f"{jobs}new/?preset=hopper-simulated", _until_forecast),
        "form-model": (f"{jobs}new/?preset=siren-digits", _until_forecast),
        "form-local": (f"{jobs}new/?preset=hopper", _until_forecast),
        "form-forecast": (f"{jobs}new/?preset=hopper-simulated", _open_forecast),
        "form-errors": (f"{jobs}new/?preset=cartpole", _submit_nonsense),
        "form-draft": (f"{jobs}new/?preset=cartpole", _keep_a_draft),
        "form-fork": (f"{jobs}new/?fork={live.split('/')[-2]}", _until_forecast),
        "job-running": (live, _until_drawn),
        "job-what-if": (f"{live}what-if/", None),
        "job-what-if-over": (f"{comparisons['runs-job']}what-if/", None),
        "job-actors": (f"{live}actors/", None),
        "job-events": (f"{live}events/?rounds=1", None),
        "job-logs": (f"{live}logs/", None),
        "job-cost": (f"{live}cost/", None),
        "job-bill-local": (f"{jobs}{by_name['Cart pole, first try'].pk}/cost/", None),
        "job-bill-none": (f"{jobs}{by_name['Cart pole, seed 9'].pk}/cost/", None),
        "numbers": (f"/p/{project.slug}/numbers/lambda/starling-stack/", None),
        "job-spec": (f"{live}spec/", None),
        "job-policy": (f"{live}checkpoints/", None),
        "model-charts": (model, _until_drawn),
        "model-judged": (f"{model}checkpoints/", None),
        "job-budget": (f"{jobs}{by_name['Hopper, wide'].pk}/", _until_drawn),
        "job-standing": (f"{jobs}{on_lambda.pk}/", None),
        "job-archived": (f"{jobs}{archived.pk}/", _ask_to_delete),
        "job-deleted": (f"{jobs}{deleted.pk}/", None),
        "list-archived": (f"{jobs}?q=is:archived", _choose_three),
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
        "data-choosing-errors": (f"{data}{tables['choosing'].pk}/", _submit_nothing),
        "data-ready": (f"{data}{tables['ready'].pk}/", None),
        "data-form": (f"{jobs}new/?data={tables['ready'].manifest}", _until_forecast),
        "data-reading": (f"{data}{tables['reading'].pk}/", None),
        "data-failed": (f"{data}{tables['failed'].pk}/", None),
        "clouds": (clouds, None),
        "clouds-empty": (f"/p/{empty.slug}/clouds/", None),
        "clouds-new": (f"{clouds}new/aws_role/", None),
        "clouds-new-errors": (f"{clouds}new/azure_principal/", _submit_nothing),
        "clouds-role": (f"{clouds}{connected['fresh'].pk}/", None),
        "clouds-azure": (f"{clouds}{connected['azure'].pk}/", None),
        "clouds-ready": (f"{clouds}{connected['ready'].pk}/", None),
        "clouds-missing": (f"{clouds}{connected['missing'].pk}/", _open_credentials),
        "clouds-profile": (f"{clouds}{connected['ready'].pk}/profile/", None),
        "clouds-profile-none": (f"{clouds}{connected['fresh'].pk}/profile/", None),
        "clouds-profile-failed": (f"{clouds}{connected['missing'].pk}/profile/", None),
        "clouds-profile-simulated": (f"{clouds}simulated/profile/", None),
        "alerts": (alerts, None),
        "alerts-bell": (jobs, _open_bell),
        "alerts-bell-empty": (f"/p/{empty.slug}/jobs/", _open_bell),
        "alerts-menu": (alerts, _open_alert_menu),
        "alerts-empty": (f"/p/{empty.slug}/alerts/", None),
        "alerts-rules": (f"{alerts}rules/", None),
        "alerts-channels": (f"{alerts}channels/", None),
        "alerts-channel": (f"{alerts}channels/{told['failing'].pk}/", None),
        "alerts-channel-mail": (f"{alerts}channels/{told['mail'].pk}/", None),
        "alerts-consent": (mail_consent.path_for(mail_consent.consents_of(project.pk)[-1]), None),
        "alerts-channel-new": (f"{alerts}channels/new/webhook/", None),
        "alerts-channel-key": (f"{alerts}channels/{told['failing'].pk}/", _renew_key),
        "trackers": (f"/p/{project.slug}/trackers/", None),
        "trackers-none": (f"/p/{empty.slug}/trackers/", None),
        "trackers-mlflow": (f"/p/{project.slug}/trackers/mlflow/", None),
        "reports": (f"/p/{project.slug}/reports/?range=last-30-days&prices=actual", None),
        "reports-job": (f"/p/{project.slug}/reports/?range=last-30-days&prices=simulated&by=job", None),
        "reports-empty": (f"/p/{empty.slug}/reports/", None),
        "reports-bills": (f"/p/{project.slug}/reports/bills/?range=last-30-days", None),
        "reports-installation": ("/reports/?range=last-30-days", None),
        "machines-none": (f"{jobs}{without_machines.pk}/", None),
        "machines-some": (f"{jobs}{with_machines.pk}/", None),
        "machines-join": (f"{jobs}{with_machines.pk}/", _join),
        "papers": ("/papers/", None),
        "papers-experiment": ("/papers/learning_mujoco/", None),
        "papers-costs": ("/papers/minionsrl_table2/", None),
        "papers-calculation": ("/papers/nitro_startup/", None),
        "papers-forks": ("/papers/branching/", None),
        "members": (f"/p/{project.slug}/members/", None),
        "members-invited": (f"/p/{project.slug}/members/", _invite),
        "projects": ("/projects/", _show_archived),
        "project-settings": (f"/p/{project.slug}/settings/", None),
        "project-archived": (f"/p/{old.slug}/settings/", None),
        "join": (join, None),
        "link-confirm": (accounts.one_time_sign_in_path(bob), None),
        "account": ("/account/", None),
        "account-email": ("/accounts/email/", None),
        "account-password": ("/accounts/password/change/", None),
        "account-again": ("/accounts/reauthenticate/", None),
        "sign-out": ("/accounts/logout/", None),
        "tokens": ("/account/tokens/", None),
        "tokens-made": ("/account/tokens/", _make_token),
        "api": ("/api/", _open_operation),
        "links": (f"/p/{project.slug}/links/", None),
        "links-none": (f"/p/{empty.slug}/links/", None),
        "links-job": (f"/p/{project.slug}/links/?of={live.split('/')[-2]}", None),
        "links-made": (f"/p/{project.slug}/links/?of={live.split('/')[-2]}", _make_link),
        **{
            name: (path, _until_drawn if "job" in name or "embedded" in name else None)
            for name, path in shared.items()
        },
        "missing": ("/nowhere/", None),
        **_admin(by_name["Hopper, simulated cloud"], connected["ready"]),
        **opened.opened(
            base=f"/p/{project.slug}/",
            live=live,
            budget=f"{budgets}{month.pk}/",
            channel=f"{alerts}channels/{told['failing'].pk}/",
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

PARTS = {
    *(
        "abtests:progress",
        "predictions:predicted",
        "alerts:bell",
        "connections:steps",
        "overview:spending",
        "jobs:machines",
        "jobs:calls",
        "jobs:log_lines",
        "jobs:policy",
    ),
    *("surfaces:surfaces", "jobs:bill", "profiling:result", "reports:files", "schedulers:decisions"),
    *(
        "reports:installation_files",
        "schedulers:progress",
        "datasets:progress",
        "resources:job",
        "resources:project",
    ),
}
"""Addresses of parts of a page, seen in their pages."""
FILES = {
    *(
        "api:client",
        "api:command",
        "api:job_tensorboard",
        "api_nothing_here",
        "connections:paper",
        "connections:report",
    ),
    *(
        "jobs:actor_package",
        "jobs:film",
        "jobs:films",
        "jobs:log_file",
        "jobs:policy_zip",
        "jobs:series",
        "jobs:spec_file",
    ),
    *("sharing:stream", "sharing:series"),
    *("jobs:stream", "livez", "metrics", "jobs:cost_csv", "readyz", "reports:built", "reports:file"),
    *("reports:installation_built", "reports:installation_file", "schedulers:export"),
}
"""Addresses that answer with data."""
ONWARD = {"accounts:home", "account_confirm_login_code", "account_set_password"}
"""Addresses that only send people on: home, and ways to sign in that this site does not offer."""


def is_of_jobs(path: str) -> bool:
    """Whether jobs are what the page is about: about half of all pages."""
    return any(place in path for place in ("/jobs/", "/compare/", "/groups/", "/sweeps/"))


def one_of_each(shown: dict[str, tuple[str, Act | None]]) -> dict[str, tuple[str, Act | None]]:
    """The first of `shown` at each page, without its other states, such as an open menu or an empty list."""
    first: dict[str, str] = {}
    for name, (path, _) in shown.items():
        first.setdefault(_view_name(path), name)
    return {name: shown[name] for name in first.values()}


def _view_name(path: str) -> str:
    try:
        return resolve(path.partition("?")[0]).view_name
    except Resolver404:
        return path


def unseen(shown: Iterable[str]) -> set[str]:
    """Names of the addresses that a GET may ask for and that none of these paths is an example of."""
    seen = {resolve(path.partition("?")[0]).view_name for path in shown if not path.startswith("/nowhere")}
    return {name for name in _names(get_resolver().url_patterns) if name not in seen | PARTS | FILES | ONWARD}


def _names(patterns: Iterable[URLPattern | URLResolver], namespace: str = "") -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace != "api_v1":
                yield from _names(pattern.url_patterns, pattern.namespace or namespace)
        elif not _only_for_posts(pattern.callback):
            yield f"{namespace}:{pattern.name}" if namespace else str(pattern.name)


def _only_for_posts(view: Callable[..., object] | None) -> bool:
    """Whether one of the view's decorators takes no GET: they keep the methods they take in their closure."""
    while view is not None:
        if ["POST"] in [cell.cell_contents for cell in view.__closure__ or ()]:
            return True
        view = getattr(view, "__wrapped__", None)
    return False


def _open_palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.wait_for_selector("[role=option]")


def _ask_palette(page: Page) -> None:
    _open_palette(page)
    with page.expect_response("**/find/?options=1&q=hopper"):
        page.keyboard.type("hopper")
    page.wait_for_selector("[role=option]:has-text('Hopper')")


def _open_keys(page: Page) -> None:
    page.keyboard.press("?")


def _ask_to_delete(page: Page) -> None:
    page.click(".job-menu > summary")
    page.click("[data-dialog=delete-dialog]")


def _make_link(page: Page) -> None:
    page.fill("[name=sites]", "https://wiki.example.org")
    page.click("button:has-text('Make the link')")
    page.wait_for_selector("[data-copy-text=embed]")


def _show_archived(page: Page) -> None:
    page.click(".archived-projects > summary")


def _choose_three(page: Page) -> None:
    for box in page.query_selector_all("[name=job]")[:3]:
        box.check()


def _show_runs(page: Page) -> None:
    page.fill("[name=values_0]", "0.001, 0.0003, 0.0001")
    page.click("[name=look]")
    page.wait_for_selector(".points")


def _until_drawn(page: Page) -> None:
    page.wait_for_selector("html[data-drawn-seq]", state="attached")
    for figure in page.locator("[data-chart]:not([hidden])").all():  # charts out of sight are not drawn
        figure.scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, 0)")


def _until_forecast(page: Page) -> None:
    page.wait_for_selector("[data-forecast-more]")


def _open_forecast(page: Page) -> None:
    _until_forecast(page)
    with page.expect_response("**/new/forecast*"):
        page.fill("[name='budget_usd']", "0.06")
        page.fill("[name='training.scaling.fixed.actors']", "24")
    page.click("[data-forecast-more] > summary")


def _keep_a_draft(page: Page) -> None:
    page.fill("[name='training.scaling.fixed.actors']", "4")
    page.fill("[name='budget_usd']", "0")
    page.click("#more > summary")
    page.uncheck("[name='training.algorithm.ppo.learning_rate_decay']")
    page.click("[name=save]")
    page.wait_for_url("**/new/?draft=*")
    page.wait_for_selector(".drafts")


def _submit_nonsense(page: Page) -> None:
    page.fill("[name='training.environment.id']", "CartPoll-v1")
    page.fill("[name='budget_usd']", "0")
    page.fill("[name='training.scaling.fixed.actors']", "9000")
    page.click("[data-launch]")
    page.wait_for_selector("[aria-invalid='true']")


def _open_credentials(page: Page) -> None:
    page.click("summary:has-text('Add credentials')")


def _open_bell(page: Page) -> None:
    page.click("[data-bell] summary")


def _open_alert_menu(page: Page) -> None:
    page.click(".alert-more summary >> nth=0")


def _join(page: Page) -> None:
    page.click(".machines button")
    page.wait_for_selector(".join")


def _renew_key(page: Page) -> None:
    page.click("[data-dialog=renew]")
    with page.expect_navigation():
        page.click("#renew .btn-primary")


def _make_token(page: Page) -> None:
    page.fill("[name='name']", "A notebook")
    page.click("text=Make the token")
    page.wait_for_selector("[data-copy-text='key']")


def _invite(page: Page) -> None:
    page.fill("[name='email']", "grace@example.org")
    page.click("text=Make the invitation")
    page.wait_for_selector("[data-copy-text='link']")


def _open_operation(page: Page) -> None:
    page.click("[id$='jobs_create_job'] > summary")


def _submit_nothing(page: Page) -> None:
    page.click("main .btn-primary")
    page.wait_for_selector("[aria-invalid='true']")
