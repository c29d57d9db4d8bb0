"""Pictures of the pages to look at: `python -m tests.journeys.screenshots FOLDER [WORD ...]`.

Serves the site on a folder of its own with made-up jobs, and takes each page in light and dark, wide and narrow.
With words, only pages whose name has one of them.
"""

# ruff: noqa: E402 - Django is set up before models are imported

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # the browser's driver keeps an event loop in this thread

import django

django.setup()

from django.conf import settings
from django.core.management import call_command
from playwright.sync_api import Browser, Page, sync_playwright

from tests.chromium import QUIET, chromium_path
from tests.journeys import (
    alert_scenes,
    api_scenes,
    bill_scenes,
    budget_scenes,
    cloud_scenes,
    comparing_scenes,
    machine_scenes,
    report_scenes,
    scenes,
    scheduler_scenes,
    standing_scenes,
)
from tests.servers import answers, server_process, wait_until
from webapp.accounts import services as accounts
from webapp.embedded_valkey import free_port

WIDTHS = {"wide": (1280, 900), "narrow": (360, 740)}
THEMES = ("light", "dark")


def pages() -> dict[str, tuple[str, Callable[[Page], None] | None]]:
    """By name: the address, and what to do there before the picture is taken. Makes what they show."""
    ada = accounts.create_person("ada@example.org", "correct horse battery")
    bob = accounts.create_person("bob@example.org", "correct horse battery")
    project = accounts.ensure_personal_project(ada)
    accounts.add_member(project, bob.email, "viewer")
    empty = accounts.create_project("Another project", ada)
    scenes.jobs_in_every_state(project, ada)
    by_name = {job.name: job for job in project.jobs.all()}
    scenes.policies_with_films(by_name["Hopper, simulated cloud"])
    report_scenes.month_of_costs(project, ada, by_name["Hopper, wide"], by_name["Hopper, simulated cloud"])
    bill_scenes.bills_of(by_name["Hopper, simulated cloud"], by_name["Cart pole, first try"])
    without_machines = machine_scenes.on_machines(project, ada, "Hopper, no machine yet")
    with_machines = machine_scenes.on_machines(project, ada, "Hopper, two machines", "attic", "office")
    month = budget_scenes.budgets_of(
        project, ada, by_name["Hopper, simulated cloud"], by_name["Hopper, wide"]
    )
    budgets = f"/p/{project.slug}/budgets/"
    jobs = f"/p/{project.slug}/jobs/"
    clouds = f"/p/{project.slug}/clouds/"
    connected = cloud_scenes.connections_in_every_state(project, ada)
    cloud_scenes.profiles_in_every_state(project, ada, connected)
    told = alert_scenes.alerts_in_every_state(project, ada, by_name)
    api_scenes.tokens_in_every_state(project, ada)
    alerts = f"/p/{project.slug}/alerts/"
    live = f"{jobs}{by_name['Hopper, simulated cloud'].pk}/"
    comparisons = comparing_scenes.comparisons(project, ada)
    on_lambda = standing_scenes.functions_kept_ready(connected["ready"])
    scheduler_scenes.surfaces_of(by_name["Hopper, simulated cloud"])
    trained = scheduler_scenes.schedulers_in_every_state(project, ada)
    schedulers = f"/p/{project.slug}/schedulers/"
    scheduler = trained["done"].version.scheduler_id
    return {
        "budgets": (budgets, None),
        "budgets-none": (f"/p/{empty.slug}/budgets/", None),
        "budget-new": (f"{budgets}new/", None),
        "budget-change": (f"{budgets}{month.pk}/", None),
        "list": (jobs, None),
        **{name: (path, None) for name, path in comparisons.items()},
        "runs-chosen": (jobs, _choose_three),
        "runs-columns": (jobs, lambda page: page.click("summary:has-text('Columns')")),
        "runs-help": (jobs, lambda page: page.click("summary:has-text('What can be asked')")),
        "sweep-points": (comparisons["sweep-new"], _show_runs),
        "list-empty": (f"/p/{empty.slug}/jobs/", None),
        "form": (f"{jobs}new/?preset=hopper-simulated", _until_forecast),
        "form-local": (f"{jobs}new/?preset=hopper", _until_forecast),
        "form-forecast": (f"{jobs}new/?preset=hopper-simulated", _open_forecast),
        "form-errors": (f"{jobs}new/?preset=cartpole", _submit_nonsense),
        "job-running": (live, _until_drawn),
        "job-actors": (f"{live}actors/", None),
        "job-events": (f"{live}events/?rounds=1", None),
        "job-logs": (f"{live}logs/", None),
        "job-cost": (f"{live}cost/", None),
        "job-bill-local": (f"{jobs}{by_name['Cart pole, first try'].pk}/cost/", None),
        "job-bill-none": (f"{jobs}{by_name['Cart pole, seed 9'].pk}/cost/", None),
        "numbers": (f"/p/{project.slug}/numbers/lambda/starling-stack/", None),
        "job-spec": (f"{live}spec/", None),
        "job-policy": (f"{live}checkpoints/", None),
        "job-budget": (f"{jobs}{by_name['Hopper, wide'].pk}/", _until_drawn),
        "job-standing": (f"{jobs}{on_lambda.pk}/", None),
        "job-queued": (f"{jobs}{by_name['Cart pole, seed 9'].pk}/", None),
        "schedulers": (schedulers, None),
        "schedulers-none": (f"/p/{empty.slug}/schedulers/", None),
        "schedulers-new": (f"{schedulers}new/?begin_with={scheduler}.1", None),
        "schedulers-one": (f"{schedulers}{scheduler}/", None),
        "schedulers-training": (f"{schedulers}trainings/{trained['running'].pk}/", None),
        "schedulers-failed": (f"{schedulers}trainings/{trained['failed'].pk}/", None),
        "schedulers-job": (f"{jobs}new/?preset=hopper-minionsrl", None),
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
        "alerts-channels": (f"{alerts}channels/", None),
        "alerts-channel": (f"{alerts}channels/{told['failing'].pk}/", None),
        "alerts-channel-new": (f"{alerts}channels/new/webhook/", None),
        "alerts-channel-key": (f"{alerts}channels/{told['failing'].pk}/", _renew_key),
        "reports": (f"/p/{project.slug}/reports/?range=last-30-days&prices=actual", None),
        "reports-job": (f"/p/{project.slug}/reports/?range=last-30-days&prices=simulated&by=job", None),
        "reports-empty": (f"/p/{empty.slug}/reports/", None),
        "reports-bills": (f"/p/{project.slug}/reports/bills/?range=last-30-days", None),
        "machines-none": (f"{jobs}{without_machines.pk}/", None),
        "machines-some": (f"{jobs}{with_machines.pk}/", None),
        "machines-join": (f"{jobs}{with_machines.pk}/", _join),
        "members": (f"/p/{project.slug}/members/", None),
        "account": ("/account/", None),
        "tokens": ("/account/tokens/", None),
        "tokens-made": ("/account/tokens/", _make_token),
        "api": ("/api/", _open_operation),
        "missing": ("/nowhere/", None),
    }


GATES = {
    "sign-in": "/accounts/login/",
    "sign-up": "/accounts/signup/",
    "password-reset": "/accounts/password/reset/",
}


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
    with page.expect_response("**/new/forecast"):
        page.fill("[name='budget_usd']", "0.05")
        page.fill("[name='training.scaling.fixed.actors']", "24")
    page.click("[data-forecast-more] > summary")


def _submit_nonsense(page: Page) -> None:
    page.fill("[name='training.environment.id']", "CartPoll-v1")
    page.fill("[name='budget_usd']", "0")
    page.fill("[name='training.scaling.fixed.actors']", "9000")
    page.click("[data-launch]")
    page.wait_for_selector("[aria-invalid='true']")


def _open_credentials(page: Page) -> None:
    page.click("summary:has-text('Hand over the credentials')")


def _open_bell(page: Page) -> None:
    page.click("[data-bell] summary")


def _open_alert_menu(page: Page) -> None:
    page.click(".alert-more summary >> nth=0")


def _join(page: Page) -> None:
    page.click(".machines button")
    page.wait_for_selector(".join")


def _renew_key(page: Page) -> None:
    page.click("[data-dialog=renew]")
    page.click("#renew .btn-primary")


def _make_token(page: Page) -> None:
    page.fill("[name='name']", "A notebook")
    page.click("text=Make the token")
    page.wait_for_selector("[data-copy-text='key']")


def _open_operation(page: Page) -> None:
    page.click("[id$='jobs_create_job'] > summary")


def _submit_nothing(page: Page) -> None:
    page.click("main .btn-primary")
    page.wait_for_selector("[aria-invalid='true']")


def take(browser: Browser, site: str, folder: Path, wanted: list[str]) -> None:
    shown = pages()
    for theme in THEMES:
        for size, (width, height) in WIDTHS.items():
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
            context.set_default_timeout(10_000)
            page = context.new_page()
            page.on("console", lambda message: message.type == "error" and print("console:", message.text))
            page.on("pageerror", lambda error: print("page error:", error))
            for name, path in GATES.items():
                _picture(page, site + path, folder / f"{name}-{theme}-{size}.png", None, name, wanted)
            page.goto(f"{site}/accounts/login/")
            page.fill("[name=login]", "ada@example.org")
            page.fill("[name=password]", "correct horse battery")
            page.click("main button")
            page.wait_for_url("**/jobs/")
            for name, (path, act) in shown.items():
                _picture(page, site + path, folder / f"{name}-{theme}-{size}.png", act, name, wanted)
            context.close()


def _picture(
    page: Page, address: str, file: Path, act: Callable[[Page], None] | None, name: str, wanted: list[str]
) -> None:
    if wanted and not any(word in name for word in wanted):
        return
    page.goto(address)
    if act is not None:
        act(page)
    page.wait_for_timeout(400)
    page.screenshot(path=str(file), full_page=True)
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if overflow > 0:
        print(f"{file.name}: {overflow} px too wide")


def main(folder: Path, wanted: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    call_command("migrate", verbosity=0)
    port = free_port()
    command = [
        *(
            sys.executable,
            "-m",
            "uvicorn",
            "webapp.asgi:application",
            "--port",
            str(port),
            "--lifespan",
            "off",
        ),
        *("--ws", "websockets-sansio"),
    ]
    environment = {
        "STARLING_TEST_FOLDER": str(settings.STARLING_TEST_FOLDER),
        "SECRET_KEY": settings.SECRET_KEY,
        "STARLING_AWS_PRINCIPAL": "arn:aws:iam::999988887777:role/starling",
    }
    with (
        server_process(command, environment=environment, log=folder / "web.log"),
        sync_playwright() as playwright,
    ):
        site = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(f"{site}/livez"), within_s=30, what="the site answers")
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=QUIET)
        take(browser, site, folder, wanted)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
