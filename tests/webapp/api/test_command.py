"""The command `starling`: what its rows ask for, what it shows, and how it ends; and that its documents tell of it."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from client import Starling, StarlingError, starling
from client.commands import COMMANDS
from client.execute import CommandRun
from client.main import main, parser
from tests.factories import make_alert, make_job, make_spec
from tests.webapp.api_callers import project_of_client
from tests.webapp.data_tables import FLOWERS, worker_reads
from webapp.api import reference
from webapp.api.tokens import make_token
from webapp.api.views import FOLDER, packed_command
from webapp.connections.models import Connection
from webapp.datasets.files import upload_path
from webapp.datasets.models import DataSet
from webapp.jobs.models import Job
from webapp.money.models import Budget
from webapp.reports import report_builds
from webapp.reports.models import ReportFile

ROOT = Path(settings.BASE_DIR)
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "templates/api/tokens.html")
_GIVEN = {"METHOD": "GET", "PATH": "//projects", "COUNT": "2", "LIMIT_USD": "5", "VERSION": "sch_ab.2"}


def _words(row: Any) -> list[str]:
    return [*row.name, *(_GIVEN.get(word, word.strip(".").lower()) for word in row.given)]


class TestTheTable:
    def test_every_row_is_a_command_and_asks_for_an_address_of_the_api(self) -> None:
        known = {
            (one.method, re.sub(r"{\w+}", "{}", one.path.removeprefix("/api/v1")))
            for many in reference.groups().values()
            for one in many
        }
        command = parser()
        for row in COMMANDS[:-1]:
            command.parse_args(_words(row))
            method, path, *_ = row.does.split()
            whole = path[1:] if path.startswith("//") else f"/projects/{{slug}}{path}"
            whole = whole.replace("{version}", "{scheduler}/versions/{number}")
            assert (method, re.sub(r"{\w+}", "{}", whole)) in known, row.words
            if row.waits:
                assert ("GET", re.sub(r"{\w+}", "{}", f"/projects/{{slug}}{row.waits}")) in known, row.words

    def test_documents_and_table_tell_the_same_commands(self) -> None:
        printed = list(_documented_commands())
        assert len(printed) >= 20
        command, names = parser(), set()
        for where, line in printed:
            try:
                request = command.parse_args(shlex.split(line, comments=True))
            except SystemExit:
                pytest.fail(f"{where}: starling {line}")
            names.add(request.row.name)
        assert {row.name for row in COMMANDS} - names == set(), "commands that no document tells of"

    def test_it_needs_python_3_9_and_nothing_else(self) -> None:
        for path in FOLDER.glob("*.py"):
            tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 9))
            for node in ast.walk(tree):
                if isinstance(node, ast.Import):
                    assert {one.name.split(".")[0] for one in node.names} <= sys.stdlib_module_names, path
                if isinstance(node, ast.ImportFrom) and not node.level:
                    assert str(node.module).split(".")[0] in sys.stdlib_module_names, path

    def test_the_client_is_read_in_one_sitting(self) -> None:
        text = (FOLDER / "starling.py").read_text("utf-8")
        printed = {
            number
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
            for number in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
        }
        code = [
            line
            for number, line in enumerate(text.splitlines(), start=1)
            if line.strip() and not line.strip().startswith("#") and number not in printed
        ]
        assert len(code) <= 200


class TestItsOwnWords:
    def test_it_says_its_version(self, capsys: Any) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["--version"])
        assert (ended.value.code, capsys.readouterr().out) == (0, f"starling {starling.__version__}\n")

    @pytest.mark.parametrize("after", [True, False])
    def test_address_and_token_are_options_before_the_subject_and_after_the_verb(self, after: bool) -> None:
        given, words = ["--url", "https://a.org", "--token", "t", "--project", "p"], ["jobs", "list"]
        found = parser().parse_args([*words, *given] if after else [*given, *words])
        assert (found.url, found.token, found.project) == ("https://a.org", "t", "p")

    @pytest.mark.parametrize(
        ("typed", "offered"),
        [
            (["jo"], {"jobs"}),
            (["jobs", "fo"], {"forecast", "fork"}),
            (["--url", "https://a.org", "jobs", "fo"], {"forecast", "fork"}),
            (["jobs", "run", "cartpole", "--wa"], {"--watch"}),
            (["jobs", "run", "--project", "lab", "--wa"], {"--watch"}),
            (["budgets", "make", "A", "5", "--period", "w"], {"weekly"}),
            (["completion", ""], {"bash", "zsh"}),
            (["--ver"], {"--version"}),
            (["jobs", "run", "my-j"], set()),
        ],
    )
    def test_bash_completes_subjects_verbs_options_and_their_values(
        self, capsys: Any, typed: list[str], offered: set[str]
    ) -> None:
        assert main(["completion", "bash"]) == 0
        program = (
            f"{capsys.readouterr().out}\nCOMP_WORDS=({shlex.join(['starling', *typed])}); "
            f'COMP_CWORD={len(typed)}; _starling; echo "${{COMPREPLY[@]}}"'
        )
        done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
        assert (set(done.stdout.split()), done.stderr) == (offered, "")

    def test_zsh_gets_the_same_words_by_its_own_bridge(self, capsys: Any) -> None:
        assert main(["completion", "bash"]) == 0
        script = capsys.readouterr().out
        assert main(["completion", "zsh"]) == 0
        assert (
            re.fullmatch(r"autoload [^{]*\nbashcompinit\n(.*)", capsys.readouterr().out, re.DOTALL)[1]
            == script
        )  # type: ignore[index]


def _documented_commands() -> Iterator[tuple[str, str]]:
    """Lines of examples that begin with the command, with alternatives such as stop|pause one by one."""
    for path in DOCUMENTS:
        for line in path.read_text("utf-8").splitlines():
            found = re.match(r"\s*(?:\./starling|manage\.py starling) (.+?)(?:</pre>)?$", line)
            if found is None:
                continue
            lines = [""]
            for word in shlex.split(found[1], comments=True):
                lines = [f"{line} {shlex.quote(one)}" for line in lines for one in word.split("|")]
            yield from ((path.name, one) for one in lines)


@pytest.mark.django_db(transaction=True)
class TestAgainstTheApi:
    """The rows over the real API; only the wire between them is a test client's."""

    @pytest.fixture
    def there(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        return project_of_client(monkeypatch, ("jobs", "budget"))

    def test_tables_json_and_an_empty_list(self, there: Any, capsys: Any) -> None:
        assert main(["jobs", "list"]) == 0
        assert capsys.readouterr() == ("", "Nothing there.\n")
        job = make_job(there)
        assert main(["jobs", "list", "--limit", "1"]) == 0
        head, line = capsys.readouterr().out.splitlines()
        assert head.split()[:3] == ["job", "state", "round"]
        assert line.startswith(f"{job.pk}  Queued")
        assert main(["jobs", "show", job.pk, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["id"] == job.pk

    def test_lists_go_on_over_pages(self, there: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        jobs = [make_job(there) for _ in range(3)]
        monkeypatch.setattr("client.execute._ROWS_A_PAGE", 1)
        assert main(["jobs", "list", "--limit", "2", "--json"]) == 0
        printed = capsys.readouterr()
        assert [json.loads(line)["id"] for line in printed.out.splitlines()] == [jobs[2].pk, jobs[1].pk]
        assert main(["jobs", "list", "--limit", "2"]) == 0
        assert "There are more" in capsys.readouterr().err

    def test_what_is_given_goes_where_it_belongs(self, there: Any, capsys: Any) -> None:
        job = make_job(there)
        assert main(["jobs", "label", job.pk, "--tags", "b, a", "--note", "seen", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert (printed["tags"], printed["note"]) == (["a", "b"], "seen")
        assert main(["jobs", "clone", job.pk, "--set", "training.seed=7", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["seed"] == 7
        assert main(["jobs", "raise", job.pk, "99", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["limit_usd"] == "99"
        assert main(["budgets", "make", "All", "5", "--period", "total", "--json"]) == 0
        budget = json.loads(capsys.readouterr().out)
        assert (budget["limit_usd"], budget["period"]) == ("5", "total")
        alert = make_alert(there)
        assert main(["alerts", "snooze", str(alert.pk), "--for", "day", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["state"] == "snoozed"
        assert main(["compare", job.pk]) == 0
        printed = capsys.readouterr().out.splitlines()
        assert printed[0].split() == ["side"], "no column of what is not known: no score, no cost, no time"
        assert printed[-1].startswith("No round")
        assert main(["seeds", "launch", "cartpole", "2", "--set", "budget_usd=0.20", "--json"]) == 0
        group = json.loads(capsys.readouterr().out)
        assert (group["runs"], Budget.objects.get(group=group["id"]).limit_picodollars) == (2, 2 * 10**11)
        assert main(["call", "get", "//presets/cartpole"]) == 0
        assert json.loads(capsys.readouterr().out)["name"] == "cartpole"

    def test_reports_are_built_followed_and_saved(
        self, there: Any, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = make_job(there)
        days = ["2026-11-01", "2026-11-30"]
        assert main(["costs", *days, "--by", "job", "--job", job.pk, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["rows"] == []
        assert main(["reports", "build", *days, "--by", "job", "--job", job.pk, "--json"]) == 0
        request = json.loads(capsys.readouterr().out)
        assert (request["format"], request["state"]) == ("csv", "queued")
        assert ReportFile.objects.get().question["job"] == job.pk
        report_builds.BUILDING.run(request["id"])
        assert main(["reports", "show", str(request["id"]), "--wait"]) == 0
        assert "ready" in capsys.readouterr().out
        file = tmp_path / "november.csv"
        assert main(["reports", "save", str(request["id"]), str(file)]) == 0
        assert file.read_text().startswith("job,")
        assert main(["reports", "list"]) == 0

    def test_a_table_is_uploaded_chosen_from_and_deleted(
        self, there: Any, capsys: Any, tmp_path: Path, settings: Any
    ) -> None:
        settings.STARLING_DATA = tmp_path / "data"
        file = tmp_path / "flowers.csv"
        file.write_text(FLOWERS)
        assert main(["datasets", "upload", str(file), "--name", "Seven “flowers”", "--json"]) == 0
        made = DataSet.objects.get()
        assert json.loads(capsys.readouterr().out)["name"] == made.name == "Seven “flowers”"
        assert upload_path(made.pk).read_text() == FLOWERS
        worker_reads(made)
        assert main(["datasets", "show", str(made.pk), "--wait"]) == 0
        assert "colour  text" in capsys.readouterr().out
        assert main(["datasets", "choose", str(made.pk), "size"]) == 1
        assert "no column “size”" in capsys.readouterr().err
        chosen = ["datasets", "choose", str(made.pk), "kind", "--leave-out", "colour, width"]
        assert main([*chosen, "--held-out-share", "0.5"]) == 0
        worker_reads(made)
        assert main(["datasets", "list", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert (printed["state"], printed["features"], printed["rows"]) == ("ready", 1, 60)
        assert main(["datasets", "shipped"]) == 0
        assert "digits" in capsys.readouterr().out
        assert main(["datasets", "delete", str(made.pk)]) == 0
        assert main(["datasets", "upload", str(tmp_path / "none.csv")]) == 1
        assert "none.csv cannot be read" in capsys.readouterr().err

    def test_budgets_tell_at_other_percents_and_of_tags_that_no_job_has_yet(
        self, there: Any, capsys: Any
    ) -> None:
        made = ["budgets", "make", "Papers", "5", "--counts", "tag:not yet", "--thresholds", "30,60"]
        assert main([*made, "--json"]) == 0
        budget = json.loads(capsys.readouterr().out)
        assert (budget["scope"], budget["thresholds"]) == ("tag", [30, 60])
        job = make_job(there, spec=make_spec(tags=["not yet"]))
        assert Budget.objects.get().accounts.get() == job.account
        assert main(["budgets", "change", str(budget["id"]), "--thresholds", "10", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["thresholds"] == [10]
        assert main(["budgets", "make", "Two", "5", "--counts", "tag:a,b"]) == 1
        assert "One tag" in capsys.readouterr().err

    def test_a_cloud_is_connected_without_a_secret_in_the_command(self, there: Any, capsys: Any) -> None:
        key = make_token(user=there.people.get(), name="manages", scopes=("jobs", "manage"))[1]
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("STARLING_TOKEN", key)
            assert main(["connections", "make", "aws_role", "Mine", "us-east-1", "--json"]) == 0
            made = json.loads(capsys.readouterr().out)
            assert made["external_id"]
            role = "arn:aws:iam::123456789012:role/starling-dashboard"
            assert main(["connections", "role", made["id"], role, "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["identity"]["role_arn"] == role
            for shown_by in ("show", "standing"):
                assert main(["connections", shown_by, made["id"]]) == 0
            assert main(["connections", "list"]) == 0
            assert "Mine" in capsys.readouterr().out
            assert main(["connections", "remove", made["id"]]) == 0
            assert not Connection.objects.exists()

    def test_a_refusal_says_what_why_and_what_to_do(self, there: Any, capsys: Any) -> None:
        assert main(["jobs", "stop", "job_nowhere"]) == 1
        lines = capsys.readouterr().err.splitlines()
        assert lines[0].startswith("starling: ")
        assert lines[1].startswith("  why  ")
        assert "no such job" in lines[1]
        assert lines[2].startswith("  do   ")
        assert main(["jobs", "run", "cartpole", "--set", "budget_usd=-1", "--json"]) == 1
        printed = capsys.readouterr()
        assert json.loads(printed.out)["errors"][0]["path"] == "budget_usd"
        assert "Budget (budget_usd) must be" in printed.err
        assert not Job.objects.filter(project=there).exists()

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            (["jobs", "run", "none.json"], "none.json cannot be read"),
            (["jobs", "run", "cartpole", "--set", "seed"], "needs PATH=VALUE"),
            (["jobs", "run", "cartpole", "--set", "name.x=1"], "name in name.x is no table"),
            (["jobs", "seeds", "job_x", "few"], "a whole number"),
            (["call", "POST", "/jobs", "--body", "{"], "--body is no JSON"),
        ],
    )
    def test_what_cannot_be_sent_is_refused_here(
        self, there: Any, capsys: Any, words: list[str], why: str
    ) -> None:
        assert main(words) == 1
        assert why in capsys.readouterr().err

    def test_no_one_there_and_no_token_have_codes_of_their_own(
        self, there: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_server(*_: Any) -> Any:
            raise urllib.error.URLError("connection refused")

        monkeypatch.setattr(urllib.request.HTTPHandler, "http_open", no_server)
        monkeypatch.setattr(starling.time, "sleep", lambda _: None)
        assert main(["jobs", "list"]) == 3
        assert ": connection refused" in capsys.readouterr().err
        monkeypatch.delenv("STARLING_TOKEN")
        assert main(["jobs", "list"]) == 1
        assert "/account/tokens/" in capsys.readouterr().err
        with pytest.raises(SystemExit) as ended:
            main(["jobs", "dance"])
        assert ended.value.code == 2

    def test_following_ends_with_how_it_ended(self, there: Any, capsys: Any) -> None:
        job = make_job(there)
        for state, code in (("succeeded", 0), ("failed", 4), ("paused", 4)):
            Job.objects.filter(pk=job.pk).update(observed=state)
            assert main(["jobs", "watch", job.pk]) == code
        assert capsys.readouterr().out.count(job.pk) == 3

    def test_waiting_looks_until_it_is_over(self, there: Any, capsys: Any) -> None:
        states = iter([{"id": 5, "state": "surveying"}, {"id": 5, "state": "ready", "points_done": 9}])
        client = Starling()
        client.call = lambda *args, **query: next(states)  # type: ignore[method-assign]
        request = parser().parse_args(["surfaces", "ask", "job_x", "--wait", "--json"])
        command = CommandRun(client, request)
        assert command._poll({"id": 5, "state": "queued"}) == 0
        assert json.loads(capsys.readouterr().out)["points_done"] == 9

    def test_a_file_is_saved_under_its_name(self, there: Any, capsys: Any, tmp_path: Path) -> None:
        job = make_job(there)
        assert main(["jobs", "tensorboard", job.pk, str(tmp_path / "runs")]) == 0
        (file,) = (tmp_path / "runs").iterdir()
        assert capsys.readouterr().out.strip() == str(file)
        assert file.name == f"events.out.tfevents.0.{job.pk}"


def test_the_packed_command_runs_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "starling"
    file.write_bytes(packed_command())
    assert packed_command() == file.read_bytes()
    file.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-I", str(file), "jobs", "list"],
        env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "No token" in done.stderr
    imported = ";".join(
        [
            "import sys",
            f"sys.path.insert(0, {str(file)!r})",
            "from starling import Starling",
            "print(Starling)",
        ]
    )
    assert "starling.starling.Starling" in subprocess.check_output(
        [sys.executable, "-I", "-c", imported], text=True
    )


def test_an_answer_that_is_no_problem_is_explained() -> None:
    error = StarlingError("Failed.", "Why.", "Do.", status=502)
    assert str(error) == "Failed. Why. Do."
