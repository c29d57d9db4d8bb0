"""The subcommands of `starling`, a row each.

The words of a row are typed: lower case literally, CAPITALS are arguments. Arguments that the path names go there, the
others into the body, or into the query of a GET. A path of the installation, not of a project, begins with `//`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import output_columns as out
from .tables import TablePart


class Option(NamedTuple):
    """`kind`: text, whole, number, days, list (commas), pairs (PATH=VALUES, repeated), yes (no value)."""

    name: str
    words: str
    kind: str = "text"
    field: str = ""
    choices: tuple[str, ...] = ()

    @property
    def to(self) -> str:
        return self.field or self.name[2:].replace("-", "_")


class Command(NamedTuple):
    """`uploads`: the argument FILE is sent as a form, with the options beside it. `spec`: where in the body a job's
    spec goes, "." for the whole of it; it is a preset, a file, a job's, or a draft's. `waits`: with --wait, the address
    to poll until the request is done.
    """

    words: str
    help: str
    does: str
    shows: tuple[TablePart, ...] = ()
    options: tuple[Option, ...] = ()
    sends: dict[str, Any] = {}
    spec: str = ""
    sets: bool = False
    once: bool = False
    uploads: bool = False
    waits: str = ""
    watches: bool = False

    @property
    def name(self) -> tuple[str, ...]:
        return tuple(word for word in self.words.split() if word.islower())

    @property
    def given(self) -> tuple[str, ...]:
        return tuple(word for word in self.words.split() if not word.islower())


_LIMIT = Option("--limit", "at most so many (default 20)", "whole")
_CHECKPOINT = Option("--checkpoint", "its name (default: the best, else the newest)")
_TIMES = Option(
    "--for", "hour (default), day, or until it changes", field="how_long", choices=("hour", "day", "change")
)
_THRESHOLDS = Option("--thresholds", "send alerts at these percents, with commas between", "wholes")
_BY = Option("--by", "day (default), month, job, user, cloud, service, tag")
_PRICES = Option(
    "--prices", "actual (default), simulated, emulated", choices=("actual", "simulated", "emulated")
)
_TASK = (
    Option("--name", "a name that is there already gets a new version"),
    Option("--target", "the return or the loss that a training has to reach", "number"),
    Option("--data", "a data set, for a workload that learns from data"),
    Option("--rounds", "of an episode, at most", "whole"),
    Option("--budget-usd", "of an episode, simulated"),
)
_MONEY = Option("--money", "show money too", "yes")
_DAYS = Option("--days", "how long it works (default 30)", "days")
_EMBED = Option(
    "--embed-on", "sites that may embed it, with commas between, such as https://wiki.example.org", "list"
)
_SHARED_BY = Option("--by", "day (default), month, job, cloud, service, tag",
                    choices=("day", "month", "job", "cloud", "service", "tag"))  # fmt: skip
_MEASURED = (
    Option("--memory-mb", "sizes, with commas between", "wholes"),
    Option("--steps", "of a call", "whole"),
    Option("--calls", "at each size", "whole"),
)
_SIZES = {"memory_mb": [512, 1024, 1769, 3008]}
_WHAT_IF = (
    Option("--actors", "in every later round", "whole"),
    Option("--limit-usd", "another limit, not below what is spent"),
)
_TRAINING, _SURFACE_OF = "/scheduler-trainings/{id}", "/jobs/{job}/surfaces/{id}"
_DATA = "/datasets/{id}"
_OF_ACCOUNT = "/connections/{connection}/profiles"

COMMANDS: tuple[Command, ...] = (
    Command("jobs list", "Jobs, newest first.", "GET /jobs", out.JOBS, (
        Option("--q", "as in the search above the list, such as 'state:failed cost>1 -tag:keep'"),
        Option("--state", "a state, or active, paused, succeeded, failed, stopped"),
        Option("--name", "a part of it"), Option("--tag", "with this tag"), Option("--group", "of this group"),
        Option("--environment", "such as CartPole-v1"), Option("--algorithm", "such as ppo"),
        Option("--platform", "such as simulated"), _LIMIT)),
    Command("jobs run SPEC", "Launch a preset, or a spec from a file (JSON, TOML, YAML).", "POST /jobs", out.JOBS,
            spec=".", once=True, watches=True),
    Command("jobs forecast SPEC", "What it would take and cost; nothing is launched.", "POST /forecast", out.FORECAST,
            spec="."),
    Command("jobs show JOB", "One job.", "GET /jobs/{job}", out.JOB),
    Command("jobs watch JOB", "Follow a job to its end.", "GET /jobs/{job}", out.JOBS, watches=True),
    Command("jobs stop JOB", "Stop a job; its checkpoint is kept.", "POST /jobs/{job}/stop", out.JOBS),
    Command("jobs pause JOB", "Pause a job; it costs nothing more until it resumes.", "POST /jobs/{job}/pause",
            out.JOBS),
    Command("jobs resume JOB", "Resume a paused job.", "POST /jobs/{job}/resume", out.JOBS, watches=True),
    Command("jobs again JOB", "Run a job once more.", "POST /jobs/{job}/again", out.JOBS, (
        Option("--new-seed", "with an unused seed", "yes"),), once=True, watches=True),
    Command("jobs clone JOB", "Launch a job's spec again, with changes.", "POST /jobs", out.JOBS,
            spec=".", once=True, watches=True),
    Command("jobs fork JOB", "Launch a job that starts from a checkpoint of this one.", "POST /jobs/{job}/forks",
            out.JOBS,
            (_CHECKPOINT,), spec="spec", once=True, watches=True),
    Command("jobs seeds JOB COUNT", "Launch more seeds of a job's settings.", "POST /jobs/{job}/seeds", out.GROUPS,
            once=True),
    Command("jobs label JOB", "Change a job's tags and note, or archive it.", "PUT /jobs/{job}/labels", out.JOB, (
        Option("--tags", "these and no others, with commas between", "list"), Option("--note", "its note"),
        Option("--archived", "leave it out of lists", "truth"))),
    Command("jobs delete JOB", "Delete an archived job for good; what it cost stays in reports.", "DELETE /jobs/{job}"),
    Command("jobs actors JOB", "Change the bounds of a running job's number of actors; no bound: as launched.",
            "PUT /jobs/{job}/actors", out.JOB, (
                Option("--least", "at least so many", "whole"), Option("--most", "at most so many", "whole"))),
    Command("jobs what-if JOB", "Predict a running job's end, cost and score; nothing changes.",
            "GET /jobs/{job}/prediction", out.PREDICTION, _WHAT_IF),
    Command("jobs apply JOB", "Apply other actors or another limit, and keep what that is predicted to do"
            " (scope: budget).", "POST /jobs/{job}/predictions", out.PREDICTION, _WHAT_IF),
    Command("jobs predictions JOB", "Its kept predictions, judged at its end.", "GET /jobs/{job}/predictions",
            out.PREDICTIONS),
    Command("jobs raise JOB LIMIT_USD", "Raise a job's budget (scope: budget).", "PUT /jobs/{job}/budget", out.JOBS),
    Command("jobs report JOB", "What a job has cost, to the last digit.", "GET /jobs/{job}/cost", out.COST),
    Command("jobs rounds JOB", "Its rounds, in order.", "GET /jobs/{job}/rounds", out.ROUNDS, (
        Option("--after", "only rounds after this one", "whole"), _LIMIT)),
    Command("jobs evaluations JOB", "Its evaluations.", "GET /jobs/{job}/evaluations", out.EVALUATIONS),
    Command("jobs checkpoints JOB", "Its kept checkpoints.", "GET /jobs/{job}/checkpoints", out.CHECKPOINTS),
    Command("jobs spec JOB", "A job's spec, as JSON.", "GET /jobs/{job}/spec"),
    Command("jobs policy JOB TO", "Save its policy: ONNX, card, script.", "GET /jobs/{job}/policy starling-{job}.zip",
            options=(_CHECKPOINT,)),
    Command("jobs tensorboard JOB TO", "Save a run for TensorBoard, into a folder.",
            "GET /jobs/{job}/tensorboard events.out.tfevents.0.{job}"),
    Command("seeds launch SPEC COUNT", "Launch seeds of a spec as one group; they share the spec's budget.",
            "POST /seeds", out.GROUPS, spec="spec", once=True),
    Command("compare OF...", "Compare jobs and groups, by ids and keys.", "GET /comparison", out.COMPARED),
    Command("groups list", "Groups of jobs, newest first.", "GET /groups", out.GROUPS),
    Command("sweeps launch SPEC NAME LIMIT_USD", "Launch a sweep: all of its runs below one limit in dollars.",
            "POST /sweeps", out.GROUPS, (
                Option("--field", "such as training.algorithm.learning_rate='0.001, 0.0003'; repeat it", "pairs",
                       "fields"),
                Option("--way", "grid (default), or random", choices=("grid", "random")),
                Option("--points", "drawn by chance", "whole"), Option("--seeds", "of each point", "whole")),
            spec="base", once=True),
    Command("goals", "Dollars and minutes to a task's reference return.", "GET /goals", out.GOALS, (
        Option("--environment", "such as Hopper-v5 (default CartPole-v1)", field="subject"),)),
    Command("ab-tests list", "Whether jobs are better with one change: questions and answers.", "GET /ab-tests",
            out.AB_TESTS),
    Command("ab-tests ask JOB CHANGE BUDGET_USD", "Ask whether a finished job is better with one change, such as"
            " training.algorithm.kind=a2c.", "POST /ab-tests", out.AB_TEST, (
                Option("--effect", "smallest difference worth finding, in standard deviations (default 1.5)", "number"),
            ), once=True, waits="/ab-tests/{id}"),
    Command("ab-tests show TEST", "A test with its answer.", "GET /ab-tests/{test}", out.AB_TEST,
            waits="/ab-tests/{id}"),
    Command("ab-tests stop TEST", "Stop a test and its runs.", "POST /ab-tests/{test}/stop", out.AB_TEST),
    Command("drafts list", "Your drafts of jobs.", "GET /drafts", out.DRAFTS),
    Command("drafts save SPEC", "Save a spec as a draft; nothing is launched.", "POST /drafts", out.DRAFTS, spec="spec",
            once=True),
    Command("drafts launch DRAFT", "Launch a draft; it stays.", "POST /jobs", out.JOBS, spec=".", once=True,
            watches=True),
    Command("drafts delete DRAFT", "Delete a draft.", "DELETE /drafts/{draft}"),
    Command("alerts list", "Alerts that are not resolved, newest first.", "GET /alerts", out.ALERTS, (
        Option("--state", "those in one state", choices=("open", "acknowledged", "snoozed", "over", "all")),
        _LIMIT)),
    Command("alerts acknowledge ALERT", "Mark that you are on it.", "POST /alerts/{alert}", out.ALERTS,
            sends={"do": "acknowledge"}),
    Command("alerts snooze ALERT", "Quiet for a while.", "POST /alerts/{alert}", out.ALERTS, (_TIMES,),
            {"do": "snooze"}),
    Command("alerts settle ALERT", "Resolve an alert.", "POST /alerts/{alert}", out.ALERTS, sends={"do": "settle"}),
    Command("alerts rules", "The project's own alert rules.", "GET /alert-rules", out.RULES),
    Command("alerts add-rule TEXT", "Add an alert rule, such as 'return > 2,000'.", "POST /alert-rules", out.RULES),
    Command("alerts remove-rule RULE", "Remove an alert rule.", "DELETE /alert-rules/{rule}"),
    Command("trackers list", "MLflow and W&B, if runs are sent there.", "GET /trackers", out.TRACKERS),
    Command("trackers set KIND PLACE", "Send runs to mlflow or wandb (scope: manage). Enter its token on its page.",
            "PUT /trackers/{kind}", out.TRACKERS, (
        Option("--address", "of MLflow's server; left out: wandb.ai"),
        Option("--on", "no: keep the setting, send nothing", "truth"))),
    Command("trackers remove KIND", "Remove it with its token (scope: manage).", "DELETE /trackers/{kind}"),
    Command("budgets list", "Budgets that bind this project.", "GET /budgets", out.BUDGETS),
    Command("budgets make NAME LIMIT_USD", "Make a budget above jobs.", "POST /budgets", out.BUDGETS, (
        Option("--counts", "project (default), user:EMAIL, cloud:KIND, tag:NAME, group:NAME"),
        Option("--period", "monthly (default), weekly, total", choices=("total", "monthly", "weekly")),
        Option("--at-line", "drain (default), fewer, stop", choices=("fewer", "drain", "stop")), _THRESHOLDS)),
    Command("budgets change BUDGET", "Change its name, line or alert thresholds (scope: budget).",
            "PUT /budgets/{budget}", out.BUDGETS, (
        Option("--name", "as people read it"),
        Option("--at-line", "drain, fewer, stop", choices=("fewer", "drain", "stop")), _THRESHOLDS)),
    Command("budgets raise BUDGET LIMIT_USD", "Change its limit (scope: budget).", "PUT /budgets/{budget}",
            out.BUDGETS),
    Command("budgets close BUDGET", "Close it: it no longer binds (scope: budget).", "DELETE /budgets/{budget}",
            out.BUDGETS),
    Command("costs FIRST_DAY LAST_DAY", "What days cost (UTC, both included), by anything.", "GET /costs", out.COSTS, (
        _BY, _PRICES, Option("--job", "only this job"), Option("--tag", "only jobs with this tag"))),
    Command("reports list", "Requested reports, newest first.", "GET /reports", out.REPORTS),
    Command("reports build FIRST_DAY LAST_DAY", "Build a report, as a file.", "POST /reports", out.REPORTS, (
        Option("--format", "csv (default), xlsx, pdf, json, focus", choices=("csv", "xlsx", "pdf", "json", "focus")),
        Option("--by", "day (default), month, job, user, cloud, service, tag, call"), _PRICES,
        Option("--job", "only this job"), Option("--user", "only of this person"),
        Option("--cloud", "only on this cloud"), Option("--service", "only of this service"),
        Option("--tag", "only jobs with this tag")), waits="/reports/{id}"),
    Command("reports show REPORT", "How far a report is.", "GET /reports/{report}", out.REPORTS,
            waits="/reports/{id}"),
    Command("reports save REPORT TO", "Save a report's file.", "GET /reports/{report}/file starling-report-{report}"),
    Command("connections list", "Connections to clouds.", "GET /connections", out.CONNECTIONS),
    Command("connections show CONNECTION", "One connection, with its last test.", "GET /connections/{connection}",
            out.CONNECTION),
    Command("connections make KIND NAME REGION", "Connect a cloud: aws_role, aws_keys, azure_principal (scope: manage)."
            " Enter its secrets on its page.", "POST /connections", out.CONNECTION, (
        Option("--subscription-id", "of Azure"), Option("--resource-group", "of Azure"))),
    Command("connections role CONNECTION ROLE_ARN", "Set the role that Starling assumes, and test it (scope: manage).",
            "PUT /connections/{connection}/identity", out.CONNECTION),
    Command("connections test CONNECTION", "Test it, right by right; look again with show.",
            "POST /connections/{connection}/test", out.CONNECTION),
    Command("connections set-up CONNECTION", "Set the account up, or bring it up to date (scope: manage).",
            "POST /connections/{connection}/set-up", out.SET_UP, (
        Option("--memory-mb", "of AWS's functions", "whole"), Option("--bucket", "for networks over 4 MB", "yes"),
        Option("--image", "of Azure's containers"))),
    Command("connections standing CONNECTION", "What was made in the account, step by step.",
            "GET /connections/{connection}/set-up", out.SET_UP),
    Command("connections clear CONNECTION", "Remove what a set-up made in the account (scope: manage).",
            "DELETE /connections/{connection}/set-up", out.SET_UP),
    Command("connections remove CONNECTION", "Remove a connection with its secrets (scope: manage).",
            "DELETE /connections/{connection}"),
    Command("schedulers list", "Agents that scale trainings.", "GET /schedulers", out.SCHEDULERS, (_LIMIT,)),
    Command("schedulers versions SCHEDULER", "Versions of one, newest first.", "GET /schedulers/{scheduler}/versions",
            out.VERSIONS, (_LIMIT,)),
    Command("schedulers export VERSION TO", "Save a version with its weights.",
            "GET /schedulers/{version} scheduler-{version}.json"),
    Command("schedulers remove SCHEDULER", "Remove one with its versions (scope: manage).",
            "DELETE /schedulers/{scheduler}"),
    Command("schedulers train WORKLOAD", "Train one for a preset, on the simulated cloud.",
            "POST /scheduler-trainings", out.TRAININGS,
            (*_TASK, Option("--begin-with", "a version, such as sch_abcdefghij.2")), sets=True, once=True,
            waits=_TRAINING),
    Command("schedulers fine-tune VERSION WORKLOAD", "Train a version on for another task.",
            "POST /schedulers/{version}/fine-tunings", out.TRAININGS,
            (*_TASK, Option("--episodes", "real ones (default 10)", "whole")), once=True, waits=_TRAINING),
    Command("schedulers trainings", "Trainings, newest first.", "GET /scheduler-trainings", out.TRAININGS, (_LIMIT,)),
    Command("schedulers progress TRAINING", "How far a training is.", "GET /scheduler-trainings/{training}",
            out.PROGRESS,
            waits=_TRAINING),
    Command("schedulers episodes TRAINING", "Its episodes, in order.", "GET /scheduler-trainings/{training}/episodes",
            out.EPISODES, (Option("--after", "only episodes after the one with this id", "whole"), _LIMIT)),
    Command("schedulers stop TRAINING", "Stop a training; what was recorded stays.",
            "POST /scheduler-trainings/{training}/stop", out.TRAININGS),
    Command("surfaces list JOB", "Reward surfaces of a job's checkpoints.", "GET /jobs/{job}/surfaces", out.SURFACES,
            (_LIMIT,)),
    Command("surfaces ask JOB", "Measure the returns around a policy.", "POST /jobs/{job}/surfaces", out.SURFACES, (
        _CHECKPOINT, Option("--grid", "points of a side: 9, 15, 21, 31", "whole"),
        Option("--span", "how far to each side", "number"), Option("--episodes", "for each point", "whole")),
            waits=_SURFACE_OF),
    Command("surfaces show JOB SURFACE", "A surface, its points with --json.", "GET /jobs/{job}/surfaces/{surface}",
            out.SURFACE, waits=_SURFACE_OF),
    Command("films list JOB", "Films of a job's policy.", "GET /jobs/{job}/films", out.FILMS, (_LIMIT,)),
    Command("films ask JOB", "Film a checkpoint's policy.", "POST /jobs/{job}/films", out.FILMS, (_CHECKPOINT,),
            waits="/jobs/{job}/films/{id}"),
    Command("films save JOB FILM TO", "Save a film.", "GET /jobs/{job}/films/{film}/file starling-{job}-{film}.webp"),
    Command("profiles list CONNECTION", "Memory profiles of an account, or of `simulated`.", f"GET {_OF_ACCOUNT}",
            out.PROFILES, (_LIMIT,)),
    Command("profiles cost CONNECTION ENVIRONMENT", "What a profile would cost; nothing is made.",
            f"POST {_OF_ACCOUNT}/cost",
            out.PROFILE_COST, _MEASURED, _SIZES),
    Command("profiles ask CONNECTION ENVIRONMENT", "Profile memory (in an account: scope manage).",
            f"POST {_OF_ACCOUNT}", out.PROFILE,
            (*_MEASURED, Option("--keep", "functions that were made for it", "yes")), _SIZES, once=True,
            waits=f"{_OF_ACCOUNT}/{{id}}"),
    Command("profiles show CONNECTION PROFILE", "One profile, with what was measured.",
            f"GET {_OF_ACCOUNT}/{{profile}}", out.PROFILE, waits=f"{_OF_ACCOUNT}/{{id}}"),
    Command("profiles use CONNECTION PROFILE", "A job's spec with the chosen memory, as JSON.",
            f"GET {_OF_ACCOUNT}/{{profile}}/spec"),
    Command("datasets list", "Data sets, newest first.", "GET /datasets", out.DATA_SETS, (_LIMIT,)),
    Command("datasets upload FILE", "Upload a table: CSV, packed with gzip or not, or NPZ.", "POST /datasets",
            out.DATA_SETS, (Option("--name", "its name (default: the file's)"),), uploads=True, waits=_DATA),
    Command("datasets show DATA_SET", "One data set, with its columns.", "GET /datasets/{data_set}", out.DATA_SET,
            waits=_DATA),
    Command("datasets choose DATA_SET TARGET", "Choose the target; the data set is made.",
            "PUT /datasets/{data_set}/choice", out.DATA_SETS, (
                Option("--leave-out", "columns, with commas between", "list"),
                Option("--as-text", "columns of numbers that are names, with commas between", "list"),
                Option("--held-out-share", "of the rows (default 0.2)", "number"),
                Option("--seed", "of what is held out (default 0)", "whole"),
                Option("--place-bits", "text is hashed into 2^b places (default 16)", "whole")), waits=_DATA),
    Command("datasets delete DATA_SET", "Delete one; jobs and their costs stay.", "DELETE /datasets/{data_set}"),
    Command("datasets shipped", "Data sets that need no upload.", "GET //datasets", out.SHIPPED),
    Command("papers list", "Stored experiments of the papers.", "GET //experiments", out.EXPERIMENTS),
    Command("papers show EXPERIMENT", "One experiment, with its verdicts.", "GET //experiments/{experiment}",
            out.EXPERIMENT),
    Command("papers figures", "The papers' figures and the result of each.", "GET //figures", out.FIGURES),
    Command("presets list", "Specs to start from.", "GET //presets", out.PRESETS),
    Command("projects list", "Your projects.", "GET //projects", out.PROJECTS),
    Command("projects make NAME", "Make a project; you are its owner.", "POST //projects",
            out.PROJECTS),
    Command("projects rename SLUG NAME", "Rename one; its slug stays (scope: manage).", "PUT //projects/{slug}",
            out.PROJECTS),
    Command("projects archive SLUG", "Make one read-only (scope: manage).", "PUT //projects/{slug}",
            out.PROJECTS, (Option("--end-running", "end its jobs and trainings", "yes"),), {"archived": True}),
    Command("projects unarchive SLUG", "Open an archived one again (scope: manage).", "PUT //projects/{slug}",
            out.PROJECTS, sends={"archived": False}),
    Command("links list", "Links for people without an account.", "GET /links", out.LINKS, (_LIMIT,)),
    Command("links make OF...", "Share a job, or the jobs and groups of a comparison (scope: manage).", "POST /links",
            out.MADE_LINK, (_MONEY, _DAYS, _EMBED)),
    Command("links costs RANGE", "Share costs: this-month, last-month, last-7-days, last-30-days (scope: manage).",
            "POST /links", out.MADE_LINK, (_SHARED_BY, _PRICES, _DAYS, _EMBED), {"money": True}),
    Command("links revoke LINK", "Revoke a link: it works no longer.", "DELETE /links/{link}"),
    Command("people list", "Members of the project.", "GET /members", out.MEMBERS, (_LIMIT,)),
    Command("people invite EMAIL", "Invite a person, also one without an account (scope: manage).",
            "POST /invitations", out.INVITED, (
                Option("--role", "viewer (default), editor, owner", choices=("viewer", "editor", "owner")),)),
    Command("people invited", "Open invitations (scope: manage).", "GET /invitations", out.INVITATIONS, (_LIMIT,)),
    Command("people withdraw INVITATION", "Withdraw an invitation (scope: manage).",
            "DELETE /invitations/{invitation}"),
    Command("call METHOD PATH", "Any address of the API, such as GET /connections or GET //prices.", "", options=(
        Option("--body", "JSON to send"),)),
)  # fmt: skip
