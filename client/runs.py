"""Runs as objects: launch one, wait for it, read its rounds, stop it, download its policy, compare it."""

from __future__ import annotations

import importlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from . import drawing
from .comparison import Comparison
from .drawing import open_display
from .output_columns import TRAINING_SCORE
from .request_bodies import SPEC_FILES, put, read_spec, wrong
from .starling import Starling

_STATES = ("failed", "cancelled", "paused")
"""What a run of several jobs is called once none of them works any more: the first that one of them is."""


def launch(
    spec: str | Mapping[str, Any] | Run,
    *,
    seeds: int = 1,
    budget_usd: float | str | Decimal | None = None,
    client: Starling | None = None,
    key: str = "",
    **changes: Any,
) -> Run:
    """Launch a preset, a spec (a mapping or the path of a JSON, TOML or YAML file), or a run's spec once more.

    `budget_usd` is for all seeds together: each gets the same share, so no more than it is ever spent. Further keywords
    change the spec, with two underscores between its parts: training__seed=7. With a `key` a repeated launch returns
    the same run. Raises StarlingError, whose text says what to do.
    """
    if seeds < 1:
        raise wrong(f"Seeds must be 1 or more; {seeds} was given.", "Leave it out for one.")
    client = client or Starling()
    document = _document(spec, client)
    for path, value in changes.items():
        put(document, path.replace("__", "."), value)
    if budget_usd is not None:
        document["budget_usd"] = _amount(budget_usd)
    if seeds == 1:
        return Run(client, client.launch(document, key))
    group = client.call("POST", "/seeds", {"spec": document, "count": seeds}, key or uuid.uuid4().hex)
    return Run(client, group)


def open_run(key: str, client: Starling | None = None) -> Run:
    """A run that exists: the id of a job, or the key of a group such as group_7. Raises StarlingError."""
    client = client or Starling()
    if not key.startswith("group_"):
        return Run(client, client.job(key))
    for group in client.call("GET", "/groups"):
        if group["key"] == key:
            return Run(client, group)
    raise wrong(f"The project {client.project} has no {key}.", "See `starling groups list`.")


class Run:
    """A job, or the seeds of one spec. Its figures are those of the server, fetched as they are read."""

    def __init__(self, client: Starling, document: dict[str, Any]) -> None:
        self._client = client
        self._is_group = "key" in document
        self.key: str = document["key"] if self._is_group else document["id"]
        self.name: str = document["name"]
        self.url: str = document["url"]
        self._jobs: list[dict[str, Any]] = [] if self._is_group else [document]
        self._curves: dict[str, list[dict[str, Any]]] = {}

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """Its jobs as the API returns them, by seed. Not fetched again once all are over."""
        if not self._jobs or not all(job["over"] for job in self._jobs):
            if self._is_group:
                found = list(self._client.jobs(group=self.name))
            else:
                found = [self._client.job(self.key)]
            self._jobs = sorted(found, key=lambda job: (job["seed"], job["created_at"]))
        return self._jobs

    @property
    def state(self) -> str:
        """The state of its job. Of several: running while one of them works, then the worst of their ends."""
        return _state(self.jobs)

    @property
    def over(self) -> bool:
        """Whether none of its jobs can spend or learn any more."""
        return all(job["over"] for job in self.jobs)

    @property
    def spent_usd(self) -> Decimal:
        """What it has cost so far, exactly. `money` tells whether it is real."""
        return sum((Decimal(job["spent_usd"]) for job in self.jobs), Decimal(0))

    @property
    def limit_usd(self) -> Decimal:
        """What it cannot cost more than."""
        return sum((Decimal(job["limit_usd"]) for job in self.jobs), Decimal(0))

    @property
    def money(self) -> str:
        """actual, simulated or emulated."""
        return str(self.jobs[0]["money"])

    def wait(self, timeout_s: float | None = None, every_s: float = 2.0) -> Run:
        """Wait until every job is over or paused. Returns the run; TimeoutError after `timeout_s`."""
        ends_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not _rests(self.jobs):
            if ends_s is not None and time.monotonic() + every_s > ends_s:
                raise TimeoutError(f"{self.name} is still {self.state} after {timeout_s:g} s. It goes on.")
            time.sleep(every_s)
        return self

    def rounds(self) -> list[dict[str, Any]]:
        """A row a round, by seed, with its training score. Figures that are not known are None."""
        return [row for job in self.jobs for row in self._rounds_of(job)]

    def columns(self) -> dict[str, list[Any]]:
        """The rounds as columns: numpy.asarray(run.columns()["return"]), or "loss" if that is what is learned."""
        rows = self.rounds()
        return {name: [row[name] for row in rows] for name in _columns(self.jobs[0])}

    def frame(self) -> Any:
        """The rounds as a pandas.DataFrame. Raises StarlingError without pandas."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise wrong("pandas is not installed.", "Install it, or use rounds() or columns().") from None
        return pandas.DataFrame(self.columns())

    def evaluations(self) -> list[dict[str, Any]]:
        """A row an evaluation, by seed."""
        return [
            {"job": job["id"], "seed": job["seed"], **row}
            for job in self.jobs
            for row in self._client.job(job["id"], "evaluations")
        ]

    def stop(self) -> Run:
        """Stop every job that is not over; checkpoints are kept."""
        return self._act("stop")

    def pause(self) -> Run:
        """Pause every job that is not over; it costs nothing more until it resumes."""
        return self._act("pause")

    def resume(self) -> Run:
        """Resume every paused job."""
        return self._act("resume")

    def policy(self, to: str | Path = ".", seed: int | None = None) -> Path:
        """Save the policy of the best seed, or of that seed: a zip with ONNX, a card and a script. Returns its path."""
        job = _best(self.jobs) if seed is None else next((j for j in self.jobs if j["seed"] == seed), None)
        if job is None:
            raise wrong(f"{self.name} has no seed {seed}.", f"Its seeds: {[j['seed'] for j in self.jobs]}.")
        content = self._client.fetch("GET", f"/jobs/{job['id']}/policy")
        path = Path(to)
        file = path if path.suffix and not path.is_dir() else path / f"starling-{job['id']}.zip"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return file

    def compare(self, *others: Run) -> Comparison:
        """Compare with other runs: interquartile means with intervals, and which side is better."""
        keys = [self.key, *(other.key for other in others)]
        document = self._client.call("GET", "/comparison", of=keys)
        query = urlencode({"of": keys}, doseq=True)
        return Comparison(document, f"{self._client.url}/p/{self._client.project}/compare/?{query}")

    def watch(self, every_s: float = 2.0) -> None:
        """Draw it until every job is over or paused: as a chart in a notebook, else as a line of text.

        Interrupting ends the watching only; the run goes on.
        """
        with open_display() as display:
            try:
                while True:
                    jobs = self.jobs
                    display.show(drawing.line_of(self.name, jobs), partial(self._drawn, jobs))
                    if _rests(jobs):
                        return
                    time.sleep(every_s)
            except KeyboardInterrupt:
                display.tell(f"No longer watching. {self.name} goes on: {self.url}")

    def __repr__(self) -> str:
        return f"<Run {self.key}: {self.name}>"

    def __str__(self) -> str:
        return drawing.line_of(self.name, self.jobs)

    def _repr_html_(self) -> str:
        return self._drawn(self.jobs)

    def _drawn(self, jobs: list[dict[str, Any]]) -> str:
        curves = [self._curve(job) for job in jobs]
        return drawing.html_of(self.name, self.url, jobs, curves)

    def _curve(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        """The job's rounds, of which only new ones are fetched. A run that resumed has replaced its last ones."""
        known = [row for row in self._curves.get(job["id"], []) if row["round"] <= job["round_no"]]
        after = known[-1]["round"] if known else 0
        if after < job["round_no"]:
            known += self._rounds_of(job, after)
        self._curves[job["id"]] = known
        return known

    def _rounds_of(self, job: dict[str, Any], after: int = 0) -> Iterator[dict[str, Any]]:
        for page in self._client.pages(f"/jobs/{job['id']}/rounds", after=after, limit=200):
            yield _row(job, page["report"])

    def _act(self, action: str) -> Run:
        wanted = [
            job for job in self.jobs if not job["over"] and (action != "resume" or job["state"] == "paused")
        ]
        for job in wanted:
            self._client.act(job["id"], action)
        return self


def _columns(job: dict[str, Any]) -> tuple[str, ...]:
    words = drawing.words_of(job)
    return ("job", "seed", "round", words.progress, words.score, "actors", "seconds", "spent_usd")


def _row(job: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    words = drawing.words_of(job)
    spend = report.get("spend") or {}
    spent = sum(spend.get(f"{part}_picodollars", 0) for part in ("spent", "accrued")) if spend else None
    return {
        "job": job["id"],
        "seed": job["seed"],
        "round": report["round_no"],
        words.progress: report["total_env_steps"],
        words.score: report[TRAINING_SCORE],
        "actors": report["actors"],
        "seconds": report["started_s"] + report["total_s"],
        "spent_usd": None if spent is None else spent / 1e12,
    }


def _document(spec: str | Mapping[str, Any] | Run, client: Starling) -> dict[str, Any]:
    """A copy of the spec, which may be changed."""
    if isinstance(spec, Run):
        job = spec.jobs[0]
        document = client.job(job["id"], "spec")
        return {**document, "name": spec.name, "group": ""}
    if isinstance(spec, Mapping):
        return dict(json.loads(json.dumps(spec)))
    if spec.endswith(SPEC_FILES):
        document = read_spec(spec)
        if not isinstance(document, dict):
            raise wrong(
                f"{spec} is no spec: it must hold one table of fields.", "Correct it, or name a preset."
            )
        return document
    return dict(client.preset(spec)["spec"])


def _amount(budget_usd: float | str | Decimal) -> str:
    """The budget as decimal text."""
    try:
        return f"{Decimal(str(budget_usd)):f}"
    except InvalidOperation:
        raise wrong(f"budget_usd must be dollars, not {budget_usd!r}.", "Such as 0.50.") from None


def _rests(jobs: list[dict[str, Any]]) -> bool:
    return all(job["over"] or job["state"] == "paused" for job in jobs)


def _state(jobs: list[dict[str, Any]]) -> str:
    states = [str(job["state"]) for job in jobs]
    if len(set(states)) == 1:
        return states[0]
    if not _rests(jobs):
        return "running"
    return next((state for state in _STATES if state in states), "succeeded")


def _best(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """The job with the best evaluation, else with the best last score; the first if none has any."""

    def score(job: dict[str, Any]) -> tuple[float, float]:
        sign = 1 if job["score"]["higher_is_better"] else -1
        scores = (job["evaluation_return_mean"], job[TRAINING_SCORE])
        return tuple(float("-inf") if value is None else sign * value for value in scores)  # type: ignore[return-value]

    return max(jobs, key=score)
