"""`import starling`: runs as objects, against the real API; only the wire between them is a test client's."""

from __future__ import annotations

import re
import subprocess
import sys
import types
import zipfile
from collections.abc import Callable
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.conf import settings

import client as starling
from client import drawing
from client import starling as wire
from tests.factories import (
    evaluated,
    make_job,
    make_running_job,
    make_spec,
    round_finished,
)
from tests.webapp.api_callers import project_of_client
from tests.webapp.jobs.policies.test_policy import job_with_checkpoints
from webapp.jobs.charts.history import series_of
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder
from webapp.money.models import Budget

WORDS = drawing.Words("return", "steps")


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> Any:
    return project_of_client(monkeypatch)


def _record(job: Any, epoch: int, *returns: float) -> None:
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for round_no, mean in enumerate(returns, start=1):
        recorder.record(round_finished(round_no, mean=mean, spent=round_no * 10**10))
    recorder.record(evaluated(len(returns), mean=returns[-1]))


def _seeds_of(project: Any, name: str, *returns: list[float]) -> starling.Run:
    """A run of several seeds that have these returns."""
    for seed, values in enumerate(returns):
        spec = make_spec(name=f"{name}, seed {seed}", group=name, training__seed=seed)
        _record(*make_running_job(project=project, user=project.people.get(), spec=spec), *values)
    return starling.open_run(f"group_{project.job_groups.get(name=name).pk}")


@pytest.mark.django_db(transaction=True)
class TestLaunching:
    def test_a_preset_is_launched_with_changes(self, project: Any) -> None:
        run = starling.launch("cartpole", budget_usd=0.5, name="First", training__seed=7)
        job = Job.objects.get(project=project)
        assert (run.key, run.name, run.state) == (job.pk, "First", "queued")
        assert job.spec["training"]["seed"] == 7
        assert run.limit_usd == Decimal("0.5")
        assert run.spent_usd == 0
        assert not run.over

    def test_a_budget_is_for_all_seeds_together(self, project: Any) -> None:
        run = starling.launch("cartpole", seeds=3, budget_usd=1, key="once")
        assert [job["seed"] for job in run.jobs] == [0, 1, 2]
        assert run.limit_usd == Decimal("0.999999"), "never more than was said"
        assert Budget.objects.get(project=project).limit_picodollars == 10**12
        assert starling.launch("cartpole", seeds=3, budget_usd=1, key="once").key == run.key
        assert Job.objects.filter(project=project).count() == 3

    def test_a_file_a_mapping_and_a_run_are_specs_too(self, project: Any, tmp_path: Path) -> None:
        document = make_spec(name="Mine").model_dump(mode="json")
        file = tmp_path / "mine.json"
        file.write_text(make_spec(name="From a file").model_dump_json())
        assert starling.launch(document).name == "Mine"
        assert starling.launch(str(file)).name == "From a file"
        for name, content in (
            ("mine.toml", 'name = "Mine"\nbudget_usd = 0.5'),
            ("mine.yaml", "name: Mine\nbudget_usd: 0.5"),
        ):
            (tmp_path / name).write_text(content)
            assert starling.launch(str(tmp_path / name)).limit_usd == Decimal("0.5")
        again = starling.launch(starling.launch(document), training__seed=9)
        assert again.jobs[0]["seed"] == 9
        assert document == make_spec(name="Mine").model_dump(mode="json")

    @pytest.mark.parametrize(
        ("given", "why"),
        [
            ({"budget_usd": "much"}, "budget_usd must be dollars"),
            ({"budget_usd": 0.000001, "seeds": 2}, "for 2 seeds"),
            ({"seeds": 0}, "Seeds must be 1"),
            ({"training__seed__x": 1}, "seed in training.seed.x is no table"),
            ({"training__stop__rounds": -1}, "Rounds"),
        ],
    )
    def test_what_is_wrong_is_refused_in_words(self, project: Any, given: dict[str, Any], why: str) -> None:
        with pytest.raises(starling.StarlingError, match=why):
            starling.launch("cartpole", **given)
        assert not Job.objects.filter(project=project).exists()

    def test_without_a_token_the_error_says_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("STARLING_TOKEN", raising=False)
        monkeypatch.setattr(wire, "CONFIG", Path("/nowhere"))
        with pytest.raises(starling.StarlingError, match=r"/account/tokens/ and set STARLING_TOKEN"):
            starling.launch("cartpole")

    @pytest.mark.parametrize(
        ("name", "content", "package", "why"),
        [
            ("a.toml", "x = 1", "tomllib", r"TOML needs Python 3\.11"),
            ("a.yaml", "x: 1", "yaml", "YAML needs the package PyYAML"),
            ("a.toml", "x = [", "", "is no TOML"),
            ("a.yaml", "a: b: c", "", "is no YAML"),
            ("a.yaml", "a: 2026-01-01", "", "is no YAML"),
            ("a.json", "{", "", "is no JSON"),
            ("a.yml", "- 1", "", "one table"),
        ],
    )
    def test_a_file_that_cannot_be_sent_is_refused_in_words(
        self, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        name: str, content: str, package: str, why: str,
    ) -> None:  # fmt: skip
        (tmp_path / name).write_text(content)
        if package:
            monkeypatch.setitem(sys.modules, package, None)  # as where it is not installed
        with pytest.raises(starling.StarlingError, match=why):
            starling.launch(str(tmp_path / name))
        assert not Job.objects.filter(project=project).exists()

    def test_a_run_that_is_not_there_is_refused(self, project: Any) -> None:
        with pytest.raises(starling.StarlingError, match="has no group_7"):
            starling.open_run("group_7")
        with pytest.raises(starling.StarlingError, match="no such job"):
            starling.open_run("job_nowhere")


@pytest.mark.django_db(transaction=True)
class TestRunning:
    def test_it_is_paused_resumed_and_stopped(self, project: Any) -> None:
        run = starling.open_run(make_job(project).pk)
        assert run.pause().state == "paused"
        assert run.wait(timeout_s=0).state == "paused"
        assert run.resume().state == "queued"
        with pytest.raises(TimeoutError, match="queued after 0 s"):
            run.wait(timeout_s=0)
        assert run.stop().wait().state == "cancelled"
        assert run.over

    def test_waiting_asks_until_every_seed_is_over(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = _seeds_of(project, "Two", [1.0], [2.0])
        first, second = (job["id"] for job in run.jobs)
        ends = iter([(first, "succeeded"), (second, "failed")])

        def later(_: float) -> None:
            job, state = next(ends)
            Job.objects.filter(pk=job).update(observed=state)

        monkeypatch.setattr("client.runs.time.sleep", later)
        assert run.state == "running"
        assert run.wait().state == "failed"
        assert next(ends, None) is None

    def test_rounds_are_rows_columns_and_a_frame(self, project: Any) -> None:
        run = _seeds_of(project, "Rounds", [1.0, 2.0], [3.0])
        rows = run.rounds()
        assert [(row["seed"], row["round"], row["steps"], row["return"]) for row in rows] == [
            (0, 1, 256, 1.0),
            (0, 2, 512, 2.0),
            (1, 1, 256, 3.0),
        ]
        assert run.columns()["spent_usd"] == [0.01, 0.02, 0.01]
        assert run.columns().keys() == rows[0].keys()
        frame = run.frame()
        assert list(frame["return"]) == [1.0, 2.0, 3.0]
        assert [(row["seed"], row["return_mean"]) for row in run.evaluations()] == [(0, 2.0), (1, 3.0)]

    def test_rent_that_is_not_booked_yet_counts_as_it_does_on_pages(self, project: Any) -> None:
        job, epoch = make_running_job(project=project, user=project.people.get(), spec=make_spec())
        recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
        recorder.record(round_finished(1, spent=10**10, accrued=5 * 10**9))
        recorder.record(round_finished(2, spent=2 * 10**10))
        columns = starling.open_run(job.pk).columns()
        assert columns["spent_usd"] == [0.015, 0.02]
        job.refresh_from_db()
        assert series_of(job)["columns"]["spent_usd"] == columns["spent_usd"]

    def test_without_pandas_a_frame_is_refused_in_words(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(starling.StarlingError, match="pandas is not"):
            starling.open_run(make_job(project).pk).frame()

    def test_the_best_seeds_policy_is_saved(self, project: Any, tmp_path: Path) -> None:
        job = job_with_checkpoints(project)
        saved = starling.open_run(job.pk).policy(tmp_path / "policies")
        assert saved == tmp_path / "policies" / f"starling-{job.pk}.zip"
        assert "policy.onnx" in zipfile.ZipFile(BytesIO(saved.read_bytes())).namelist()
        with pytest.raises(starling.StarlingError, match="has no seed 5"):
            starling.open_run(job.pk).policy(tmp_path, seed=5)

    def test_runs_are_compared(self, project: Any) -> None:
        good = _seeds_of(project, "Good", [10.0], [11.0], [12.0], [13.0])
        poor = _seeds_of(project, "Poor <b>", [1.0], [2.0], [3.0], [4.0])
        found = good.compare(poor)
        assert [side["best"] for side in found.sides] == [True, False]
        assert any("Good" in sentence for sentence in found.verdicts)
        assert "Good" in str(found)
        page = found._repr_html_()
        assert "<strong>Good</strong>" in page
        assert "Poor &lt;b&gt;" in page
        assert f"/p/{project.slug}/compare/?of={good.key}&amp;of={poor.key}" in page


class _Notebook:
    """As much of IPython as a display needs, and what it was shown."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown: list[str] = []
        shell = types.ModuleType("IPython")
        shell.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
        pictures = types.ModuleType("IPython.display")
        pictures.HTML = lambda text: text  # type: ignore[attr-defined]
        pictures.display = self._display  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", shell)
        monkeypatch.setitem(sys.modules, "IPython.display", pictures)

    def _display(self, text: str, display_id: bool) -> Any:
        self.shown.append(text)
        return types.SimpleNamespace(update=self.shown.append)


def _chart(html: str) -> ElementTree.Element:
    (svg,) = ElementTree.fromstring(html).iter("{http://www.w3.org/2000/svg}svg")
    return svg


@pytest.mark.django_db(transaction=True)
class TestWatching:
    @pytest.fixture
    def run(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
        """A run of one seed, which ends at the second look after another round."""
        job, epoch = make_running_job(project=project, spec=make_spec(name="Cart <pole>"))
        _record(job, epoch, 10.0, 20.0)

        def later(_: float) -> None:
            Recorder(job.pk, epoch, keep_checkpoints=3).record(round_finished(3, mean=30.0))
            Job.objects.filter(pk=job.pk).update(observed="succeeded")

        monkeypatch.setattr("client.runs.time.sleep", later)
        return starling.open_run(job.pk)

    def test_a_notebooks_picture_is_replaced_in_place(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        notebook = _Notebook(monkeypatch)
        run.watch()
        first, last = notebook.shown
        assert "Running" in first
        assert "Succeeded" in last
        lines = [_chart(one).find(".//{*}polyline") for one in notebook.shown]
        assert [len(line.get("points", "").split()) for line in lines if line is not None] == [2, 3]
        assert run._repr_html_() == last

    def test_a_picture_fetches_nothing_and_takes_names_as_text(self, run: Any) -> None:
        page = run._repr_html_()
        tree = ElementTree.fromstring(page)
        assert {one.tag.rpartition("}")[2] for one in tree.iter()} <= {
            *("div", "a", "span", "p"),
            *("svg", "line", "text", "polyline", "circle"),
        }
        assert [one.get("href") for one in tree.iter("a")] == [run.url]
        assert "src=" not in page
        assert "url(" not in page
        assert "Cart &lt;pole&gt;" in page

    def test_a_terminal_has_a_line_for_each_change(self, run: Any, capsys: Any) -> None:
        run.watch()
        first, last = capsys.readouterr().out.splitlines()
        assert first.startswith("Cart <pole> · Running · round 2 · 512 steps · evaluated return 20 · $")
        assert last.startswith("Cart <pole> · Succeeded · round 3 · 768 steps · evaluated return 20 · $")
        assert str(run) == last

    def test_a_terminals_line_is_written_over(
        self, run: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        run.watch()
        written = capsys.readouterr().out
        assert written.count("\r") == 2
        assert written.count("\n") == 1
        assert written.endswith("\n")

    def test_interrupting_ends_the_watching_only(
        self, run: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(_: float) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("client.runs.time.sleep", interrupted)
        run.watch()
        assert "No longer watching" in capsys.readouterr().out
        assert Job.objects.get().observed == "running"

    def test_simulated_money_is_called_so(self, project: Any) -> None:
        user = project.people.get()
        run = starling.open_run(make_job(project, user, make_spec("hopper-simulated")).pk)
        assert str(run).endswith(" sim.")
        assert " sim." in run._repr_html_()
        real = starling.open_run(make_job(project, user, make_spec()).pk)
        assert "sim." not in str(real)

    def test_rounds_that_a_resume_replaced_are_drawn_again(self, project: Any) -> None:
        job, epoch = make_running_job(project=project)
        _record(job, epoch, 10.0, 20.0, 30.0)
        run = starling.open_run(job.pk)
        assert len(run._curve(run.jobs[0])) == 3
        Job.objects.filter(pk=job.pk).update(round_no=1)
        assert [row["return"] for row in run._curve(run.jobs[0])] == [10.0]


class TestDrawing:
    def test_seeds_are_faint_and_their_mean_is_not(self) -> None:
        curves = [[{"steps": x, "return": y * x} for x in (10, 20, 30)] for y in (1.0, 3.0)]
        svg = drawing._chart([drawing._points(curve, WORDS) for curve in curves], "label", WORDS)
        assert svg.count("<polyline") == 3
        assert svg.count('opacity="0.4"') == 2
        assert drawing._mean([drawing._points(curve, WORDS) for curve in curves])[-1] == (30.0, 60.0)

    def test_a_long_curve_has_as_many_points_as_a_screen(self) -> None:
        curve = [{"steps": x, "return": float(x)} for x in range(10_000)]
        points = drawing._points(curve, WORDS)
        assert len(points) <= 302
        assert points[-1] == (9999.0, 9999.0)

    @pytest.mark.parametrize(
        ("curve", "shown"),
        [
            ([], "No round with"),
            ([{"steps": 5, "return": None}], "No round with"),
        ],
    )
    def test_without_a_return_there_is_a_sentence_and_no_axis(
        self, curve: list[dict[str, Any]], shown: str
    ) -> None:
        drawn = drawing._chart([drawing._points(curve, WORDS)], "label", WORDS)
        assert shown in drawn
        assert "<svg" not in drawn

    @pytest.mark.parametrize(
        ("low", "high", "ticks"),
        [(0, 500, [0, 100, 200, 300, 400, 500]), (-3.2, 1.1, [-3, -2, -1, 0, 1]), (2, 2, [2])],
    )
    def test_axes_have_round_numbers(self, low: float, high: float, ticks: list[float]) -> None:
        assert drawing._ticks(low, high) == pytest.approx(ticks)

    @pytest.mark.parametrize("draw", [lambda: drawing._chart([[(0.0, 5.0)]], "one point", WORDS)])
    def test_one_point_is_a_dot(self, draw: Callable[[], str]) -> None:
        assert "<circle" in draw()


def test_its_document_names_what_is_there() -> None:
    text = (Path(settings.BASE_DIR) / "docs" / "client.md").read_text("utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        compile(block, "client.md", "exec")
    named = re.findall(r"\b(starling|run|other)\.([a-z_]+)", text)
    assert len(named) > 15
    made = {"url", "key", "name"}
    for owner, name in named:
        assert hasattr(starling if owner == "starling" else starling.Run, name) or name in made | {"json"}, (
            name
        )


def test_the_client_loads_nothing_but_python(tmp_path: Path) -> None:
    """As it is installed: below the name `starling`, beside nothing else of the project."""
    (tmp_path / "starling").symlink_to(Path(settings.BASE_DIR) / "client")
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; before = set(sys.modules); import starling.main, starling;"
        "names = {one.partition('.')[0] for one in set(sys.modules) - before} - sys.stdlib_module_names;"
        "print(sorted(names))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    assert said.stdout.strip() == "['starling']"
