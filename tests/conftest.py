"""Fixtures every test may ask for: Valkey, a served site on the test database, a browser.

Tests use the database through pytest-django's `django_db` mark. A test with a second process (`live_site`, `valkey`
with a worker, a job process) needs `django_db(transaction=True)`, or the other process does not see its rows.
"""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import hypothesis
import pytest

from rig.chromium import NoChromium, chromium_path
from rig.servers import reserved_port, server_process, wait_until
from tests import compiled_once, longest_first, time_limit
from tests.durations import Durations
from tests.kept_browser import KeptBrowser
from tests.live_site import KeptSite
from webapp.processes.embedded_valkey import embedded_valkey

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

    from tests.receivers import WebReceiver


# What an example takes depends on what else this machine does; CI's profile has no limits of time either.
hypothesis.settings.register_profile(
    "default", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.register(Durations(), "starling-durations")
    pluginmanager.register(longest_first, "starling-longest-first")
    pluginmanager.register(compiled_once, "starling-compiled-once")
    pluginmanager.register(time_limit, "starling-time-limit")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of endurance is slow too, so that `-m "not slow"` leaves it out."""
    for item in items:
        if item.get_closest_marker("endurance"):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """What is made here are millions of objects that live as long as the process: none is looked at for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_report_header() -> str:
    from django.conf import settings

    return f"database: {settings.DATABASES['default']['ENGINE'].rpartition('.')[2]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test of several processes tells what its page showed last, and what the others wrote."""
    report = yield
    used = getattr(item, "funcargs", {})
    if report.when == "call" and report.failed:
        with suppress(Exception):  # whatever this meets, the failure itself is what must be told
            report.sections.append(
                ("the page", f"{used['page'].url}\n{used['page'].inner_text('main')[:4000]}")
            )
        for log in sorted(used["tmp_path"].glob("*.log")) if "tmp_path" in used else ():
            said = [line for line in log.read_text(errors="replace").splitlines() if '" 200 OK' not in line]
            report.sections.append((log.name, "\n".join(said[-40:])))
    return report


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest,
    django_test_environment: None,
    django_db_blocker: Any,
    django_db_modify_db_settings: None,
) -> Iterator[None]:
    """A copy of the migrated database; on PostgreSQL by pytest-django, from a template."""
    from django.db import connection
    from django.test import TransactionTestCase

    from tests.database import empty_tables, migrated_copy, use_migrated_template

    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty_tables)
        if connection.vendor == "sqlite":
            with django_db_blocker.unblock():
                stack.enter_context(migrated_copy())
            yield
            django_db_blocker.unblock()
        else:
            if "STARLING_TEST_POSTGRES" in os.environ:  # a server of this run alone
                with django_db_blocker.unblock():
                    use_migrated_template()
            request.getfixturevalue("django_db_setup")
            yield


@pytest.fixture(scope="module")
def module_rows(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """What fixtures of the module's scope write stays for all its tests, each of which is rolled back to there."""
    from django.db import transaction

    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def _fresh_cache() -> Iterator[None]:
    """What one test's process keeps is not there for the next; what is in the database goes with its rows."""
    from django.core.cache import caches

    yield
    caches["process"].clear()


@pytest.fixture(autouse=True, scope="session")
def _data_sets_of_each_folder() -> Iterator[None]:
    """What a test's process knows of data sets is not of the folder that another test had.

    Those that come with Starling are made once for all tests.
    """
    from django.test.signals import setting_changed

    from tests.shipped_once import shipped_once
    from training.data import library
    from webapp.datasets.files import DataFolderStore

    def forget(setting: str, **_: object) -> None:
        if setting == "STARLING_DATA":
            library.forget()

    library.use(DataFolderStore(), shipped_once)
    setting_changed.connect(forget)
    yield
    setting_changed.disconnect(forget)


@pytest.fixture(autouse=True)
def _books_hold(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test with processes that run jobs, whatever they left must add up, down to the last event.

    Browser tests without a worker look at rows that were made to be looked at.
    """
    marked = {mark.name for mark in request.node.iter_markers()}
    watched = "live_worker" in request.fixturenames or ("stack" in marked and "browser" not in marked)
    watched = watched and "django_db" in marked
    if watched:
        request.getfixturevalue("transactional_db")
    yield
    if watched:
        from webapp.clock import SYSTEM_CLOCK
        from webapp.jobs.invariants import findings

        assert findings(SYSTEM_CLOCK.now()) == []


@pytest.fixture(scope="session")
def _valkey_server() -> Iterator[str]:
    from django.conf import settings

    port = urlsplit(settings.REDIS_URL).port
    server = embedded_valkey(settings.STARLING_TEST_FOLDER / "valkey", port=port, password="")
    with server_process(server.command):
        wait_until(server.answers, within_s=60, what="Valkey answers")
        yield server.url


@pytest.fixture
def valkey(_valkey_server: str) -> str:
    """The URL of an empty Valkey; settings.REDIS_URL is the same."""
    import redis

    with redis.Redis.from_url(_valkey_server) as client:
        client.flushall()
    return _valkey_server


@pytest.fixture
def receiver(settings: Any) -> Iterator["WebReceiver"]:
    """A web server on this machine, to which this process may send alerts."""
    from tests.receivers import web_receiver

    with web_receiver() as one:
        settings.STARLING_ALERT_HOSTS = [f"127.0.0.1:{one.port}"]
        yield one


@pytest.fixture
def service_environment(transactional_db: None) -> dict[str, str]:
    """What a second process needs in its environment to work on this test's database, folder and Redis."""
    from django.conf import settings
    from django.db import connection

    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        database_url = f"sqlite:///{name}"
    else:
        database_url = urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))
    return {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "STARLING_TEST_FOLDER": str(settings.STARLING_TEST_FOLDER),
        "DATABASE_URL": database_url,
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": settings.SECRET_KEY,
        "PYTHONUNBUFFERED": "1",
    }


@pytest.fixture(scope="session")
def _kept_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptSite]:
    site = KeptSite(tmp_path_factory.mktemp("site"))
    yield site
    site.close()


@pytest.fixture
def site_port() -> int:
    """Where `live_site` listens if this test starts it; for an environment that must name the site's address."""
    return reserved_port()


@pytest.fixture
def live_site(
    service_environment: dict[str, str], valkey: str, site_port: int, _kept_site: KeptSite, tmp_path: Path
) -> str:
    """The address of the site in a process of its own, on this test's database; its log is `web.log` in `tmp_path`."""
    url = _kept_site.at(service_environment, site_port)
    (tmp_path / "web.log").symlink_to(_kept_site.log)
    return url


@pytest.fixture
def live_worker(service_environment: dict[str, str], valkey: str, tmp_path: Path) -> Iterator[Path]:
    """A Celery worker and beat on this test's database, for as long as the test; the path of their log."""
    celery = [sys.executable, "-m", "celery", "--quiet", "-A", "webapp.celery"]
    worker = [*celery, "worker", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    log = tmp_path / "worker.log"
    with ExitStack() as stack:
        for command in (worker, [*celery, "beat", "--pidfile="]):
            stack.enter_context(server_process(command, environment=service_environment, log=log))
        wait_until(lambda: "worker is ready" in log.read_text(), within_s=120, what="the worker is ready")
        yield log


_BROWSER_PATIENCE_MS = 60_000  # the machine may be slow and busy


@pytest.fixture(scope="module")
def _chromium() -> Iterator[KeptBrowser]:
    """One browser a module, not a session: while it runs, this thread has a running event loop.

    Django would refuse its ORM there (also when it empties the tables after a test), and asyncio tests could not run.
    """
    path, problem = "", ""
    try:
        path = chromium_path()
    except NoChromium as none_found:
        problem = str(none_found)
    if problem:
        pytest.fail(problem, pytrace=False)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=_BROWSER_PATIENCE_MS)
    with sync_playwright() as playwright, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield KeptBrowser(playwright, path)


@pytest.fixture
def browser(_chromium: KeptBrowser) -> "Browser":
    """A running Chromium."""
    return _chromium.get()


@pytest.fixture
def browser_context(_chromium: KeptBrowser, browser: "Browser") -> Iterator["BrowserContext"]:
    """A browser without cookies or history; nothing of it is left for the next test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(_BROWSER_PATIENCE_MS)
    yield context
    _chromium.close(context)


@pytest.fixture
def page(browser_context: "BrowserContext") -> "Page":
    """An empty tab."""
    return browser_context.new_page()
