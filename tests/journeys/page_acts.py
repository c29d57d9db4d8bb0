"""What to do on a page before its picture is taken: a menu opened, a form filled, a chart drawn."""

from __future__ import annotations

from playwright.sync_api import Page


def open_palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.wait_for_selector("[role=option]")


def ask_palette(page: Page) -> None:
    open_palette(page)
    with page.expect_response("**/find/?options=1&q=hopper"):
        page.keyboard.type("hopper")
    page.wait_for_selector("[role=option]:has-text('Hopper')")


def open_keys(page: Page) -> None:
    page.keyboard.press("?")


def ask_to_delete(page: Page) -> None:
    page.click(".job-menu > summary")
    page.click("[data-dialog=delete-dialog]")


def make_link(page: Page) -> None:
    page.fill("[name=sites]", "https://wiki.example.org")
    page.click("button:has-text('Make the link')")
    page.wait_for_selector("[data-copy-text=embed]")


def show_archived(page: Page) -> None:
    page.click(".archived-projects > summary")


def choose_three(page: Page) -> None:
    for box in page.query_selector_all("[name=job]")[:3]:
        box.check()


def show_runs(page: Page) -> None:
    page.fill("[name=values_0]", "0.001, 0.0003, 0.0001")
    page.click("[name=look]")
    page.wait_for_selector(".points")


def until_drawn(page: Page) -> None:
    page.wait_for_selector("html[data-drawn-seq]", state="attached")
    for figure in page.locator("[data-chart]:not([hidden])").all():  # charts out of sight are not drawn
        figure.scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, 0)")


def until_forecast(page: Page) -> None:
    page.wait_for_selector("[data-forecast-more]")


def open_forecast(page: Page) -> None:
    until_forecast(page)
    with page.expect_response("**/new/forecast*"):
        page.fill("[name='budget_usd']", "0.06")
        page.fill("[name='training.scaling.fixed.actors']", "24")
    page.click("[data-forecast-more] > summary")


def keep_a_draft(page: Page) -> None:
    page.fill("[name='training.scaling.fixed.actors']", "4")
    page.fill("[name='budget_usd']", "0")
    page.click("#more > summary")
    page.uncheck("[name='training.algorithm.ppo.learning_rate_decay']")
    page.click("[name=save]")
    page.wait_for_url("**/new/?draft=*")
    page.wait_for_selector(".drafts")


def submit_nonsense(page: Page) -> None:
    page.fill("[name='training.environment.id']", "CartPoll-v1")
    page.fill("[name='budget_usd']", "0")
    page.fill("[name='training.scaling.fixed.actors']", "9000")
    page.click("[data-launch]")
    page.wait_for_selector("[aria-invalid='true']")


def open_credentials(page: Page) -> None:
    page.click("summary:has-text('Add credentials')")


def open_bell(page: Page) -> None:
    page.click("[data-bell] summary")


def open_alert_menu(page: Page) -> None:
    page.click(".alert-more summary >> nth=0")


def open_machine_tokens(page: Page) -> None:
    page.click(".machine-tokens summary")


def join(page: Page) -> None:
    page.click(".machines button")
    page.wait_for_selector(".join")


def renew_key(page: Page) -> None:
    page.click("[data-dialog=renew]")
    with page.expect_navigation():
        page.click("#renew .btn-primary")


def make_token(page: Page) -> None:
    page.fill("[name='name']", "A notebook")
    page.click("text=Make the token")
    page.wait_for_selector("[data-copy-text='key']")


def invite(page: Page) -> None:
    page.fill("[name='email']", "grace@example.org")
    page.click("text=Make the invitation")
    page.wait_for_selector("[data-copy-text='link']")


def open_operation(page: Page) -> None:
    page.click("[id$='create_job'] > summary")


def submit_nothing(page: Page) -> None:
    page.click("main .btn-primary")
    page.wait_for_selector("[aria-invalid='true']")
