"""The columns of each kind of response; --json shows all of it. `tables` explains the notation."""

from __future__ import annotations

from .tables import TablePart

SCORE = "leading_score"
"""The field of a job that holds its score: the evaluated one, else that of training."""
TRAINING_SCORE = "episode_return_mean"
"""The field of a job, and of a round's report, that holds the training score of any kind of training."""

JOBS = (
    TablePart(
        "job=id state=state_words @round_name=round_no:whole @progress_unit=env_steps:whole "
        "@score.name=leading_score:number scored_by training=episode_return_mean:number @actor_name=actors:whole "
        "spent=spent_usd:usd limit=limit_usd:usd money name",
    ),
)
JOB = (
    TablePart(
        "job=id name state=state_words why=reason since:at environment algorithm platform seed:whole groups "
        "tags note launched=created_at:at by=created_by @round_name=round_no:whole "
        "@progress_unit=env_steps:whole "
        "@actor_name=actors:whole fewest_actors=actors_least:whole most_actors=actors_most:whole "
        "@score.name=leading_score:number scored_by training=episode_return_mean:number "
        "evaluated=evaluation_return_mean:number time_on_the_platform=platform_s:seconds money "
        "spent=spent_usd:usd reserved=reserved_usd:usd free=free_usd:usd limit=limit_usd:usd page=url",
        tall=True,
    ),
)
COST = (
    TablePart("what=kind settled:whole open:whole cost=cost_usd:exact", at="by_kind"),
    TablePart(
        "total=total_usd:exact reserved=reserved_usd:exact free=free_usd:exact limit=limit_usd:exact money",
        tall=True,
    ),
    TablePart("budget=name free=free_usd:usd limit=limit_usd:usd", at="budgets_above"),
)
FORECAST = (
    TablePart(at="sentence"),
    TablePart(at="one_machine"),
    TablePart(
        "dollars_10_%=dollars.p10:usd dollars_50_%=dollars.p50:usd dollars_90_%=dollars.p90:usd "
        "minutes_10_%=minutes.p10:number minutes_50_%=minutes.p50:number minutes_90_%=minutes.p90:number "
        "steps=steps.p50:number calls=calls.p50:number ends_by simulated:yes",
        tall=True,
    ),
    TablePart(at="assumptions"),
)
GROUPS = (TablePart("key runs:whole made=created_at:at name page=url"),)
COMPARED = (
    TablePart(
        "side=name runs=getting.runs:whole @score.name=iqm:interval cost_a_run=cost_a_run_usd:usd "
        "time_a_run=time_a_run_s:seconds reached=getting.reached:whole to_the_goal=getting.usd:usd "
        "more_seeds=against_best.more_seeds:whole for=against_best.more_usd:usd",
        at="sides",
    ),
    TablePart("scored_by", tall=True),
    TablePart(at="verdicts"),
    TablePart("field=path values", at="differences"),
    TablePart(at="left_out"),
)
ALERTS = (
    TablePart(
        "alert=id:whole severity state last=last_at:at times:whole about=subject sentence",
    ),
)
_PREDICTED = (
    "round=round_no:whole actors:whole ends_by time_p10=time_s.p10:seconds time_p90=time_s.p90:seconds "
    "cost_p10=usd.p10:usd cost_p90=usd.p90:usd score_p10=score.p10 score_p90=score.p90"
)
PREDICTION = (TablePart(_PREDICTED),)
PREDICTIONS = (TablePart(f"{_PREDICTED} state outcome"),)
GOALS = (
    TablePart(
        "algorithm policy cloud cost=median_usd:usd time=median_s:seconds reached:whole runs:whole by_training:whole "
        "money",
        at="rows",
    ),
    TablePart(
        "experiment setting cloud goal cost=median_usd:usd time=median_s:seconds reached:whole runs:whole",
        at="measured",
    ),
)
AB_TESTS = (
    TablePart(
        "test=id:whole state pairs=pairs_ended:whole of=most_pairs:whole spent=spent_usd:usd question answer"
    ),
)
AB_TEST = (*AB_TESTS, TablePart("group reason page=url"))
RULES = (TablePart("rule=id:whole text added=created_at:at"),)
TRACKERS = (TablePart("tracker=kind state place address token=has_token:yes words"),)
BUDGETS = (
    TablePart(
        "budget=id:whole spent=spent_usd:usd reserved=reserved_usd:usd free=free_usd:usd limit=limit_usd:usd "
        "period counts tells_at_%=thresholds name outlook",
    ),
)
COSTS = (
    TablePart("what=label cost=cost_usd:exact billed=billed_usd:exact calls:whole", at="rows"),
    TablePart("total=total_usd:exact money=prices", tall=True),
)
REPORTS = (
    TablePart(
        "report=id:whole format state asked=asked_at:at size=byte_count:kb kept_until=expires_at:at reason"
    ),
)
CONNECTIONS = (TablePart("connection=id cloud kind region account state jobs:whole name words"),)
CONNECTION = (
    TablePart(
        "connection=id name cloud kind region emulated:yes account prefix external_id subscription_id resource_group "
        "state words tested=tested_at:at jobs:whole",
        tall=True,
    ),
    TablePart("right=name holds=ok:yes words do=fix", at="report.checks"),
)
SET_UP = (
    TablePart(
        "state=state_words words ready:yes memory=ready_mb bucket=ready_bucket:yes image=ready_image",
        tall=True,
    ),
    TablePart("step=name state words", at="steps"),
    TablePart(at="before"),
)
DRAFTS = (TablePart("draft=id:whole saved=saved_at:at title page=url"),)
SCHEDULERS = (TablePart("scheduler=id versions:whole newest made=created_at:at name"),)
VERSIONS = (
    TablePart(
        "version=id made=made_at:at agent subject workload most_actors=actors_max:whole "
        "episodes=facts.episodes:whole reached=facts.reached:whole cost_simulated=facts.cost_usd:usd "
        "time_here=facts.wall_s:seconds best_return=facts.best_return:number name",
    ),
)
TRAININGS = (
    TablePart(
        "training=id:whole state=state_words asked=asked_at:at workload agent most_actors=actors_max:whole "
        "target:number made=version name at=sentence",
    ),
)
PROGRESS = (
    TablePart(
        "training=id name state=state_words at=sentence workload agent subject begun_with "
        "target:number real_episodes=facts.episodes:whole of=episodes_asked:whole "
        "reached_the_target=facts.reached:whole rehearsals=facts.rehearsals:whole "
        "best_return=facts.best_return:number cost_simulated=facts.cost_usd:usd "
        "time_here=facts.wall_s:seconds made=version page=url",
        tall=True,
    ),
)
EPISODES = (
    TablePart(
        "kind number:whole rounds:whole score:number best=best_return:number reached:yes "
        "time_on_the_cloud=platform_s:seconds cost_simulated=cost_usd:usd",
    ),
)
SURFACES = (
    TablePart(
        "surface=id:whole state round=round_no:whole points=points_done:whole of=points_asked:whole "
        "checkpoint why=reason",
    ),
)
SURFACE = (
    TablePart("surface=id checkpoint state why=reason eigenvalues", tall=True),
    TablePart(at="sentence"),
)
FILMS = (
    TablePart(
        "film=id:whole state round=round_no:whole return=shows.episode_return:number "
        "length=shows.seconds:seconds size=shows.byte_count:kb checkpoint why=reason",
    ),
)
PROFILES = (
    TablePart(
        "profile=id:whole state=state_words asked=asked_at:at environment chosen=chosen_mb:mb "
        "spent=spent_usd:usd money why=sentence",
    ),
)
PROFILE = (
    TablePart("profile=id environment state=state_words why=sentence spent=spent_usd:usd money", tall=True),
    TablePart(
        "memory=memory_mb:mb picked:yes calls:whole a_million_steps=seconds_a_million_steps:seconds "
        "cost_of_them=usd_a_million_steps:usd start=start_s:seconds slower_%=slower_percent:whole "
        "dearer_%=dearer_percent:whole failure",
        at="sizes",
    ),
)
EXPERIMENTS = (
    TablePart(
        "experiment=name runs=runs_complete:whole of=runs:whole title claims=verdicts:counts",
    ),
)
EXPERIMENT = (
    TablePart(
        "title question what_it_can_claim=can_claim runs=runs_complete:whole of=runs:whole",
        tall=True,
    ),
    TablePart("verdict=word figure claim ours theirs on=environments the_paper=paper", at="claims"),
)
DATA_SETS = (
    TablePart(
        "data_set=id:whole state rows:whole held_out=held_out_rows:whole features:whole target "
        "uploaded=uploaded_at:at name"
    ),
)
DATA_SET = (
    TablePart(
        "data_set=id:whole name file state sentence in_specs=data rows:whole held_out=held_out_rows:whole "
        "features:whole target uploaded=uploaded_at:at by=uploaded_by",
        tall=True,
    ),
    TablePart("class=name rows:whole held_out=held_out_rows:whole", at="classes"),
    TablePart(
        "column=name type missing:whole different=distinct:whole lowest=low:number highest=high:number mean:number "
        "problem",
        at="table.columns",
    ),
)
SHIPPED = (TablePart("in_specs=key title words"),)
FIGURES = (TablePart("paper number verdict here=leading.figure the_paper=says experiments"),)
ROUNDS = (
    TablePart(
        "@round_name=round_no:whole @progress_unit=report.total_env_steps:whole @actor_name=report.actors:whole "
        "training_@score.name=report.episode_return_mean:number at:at",
    ),
)
EVALUATIONS = (
    TablePart(
        "@round_name=round_no:whole @progress_unit=env_steps:whole evaluated_@score.name=return_mean:number "
        "std=return_std:number",
    ),
)
CHECKPOINTS = (
    TablePart(
        "@round_name=round_no:whole @progress_unit=env_steps:whole evaluated=return_mean:number best:yes "
        "size=byte_count:kb checkpoint=name",
    ),
)
PROFILE_COST = (TablePart("likely=likely_usd:usd at_most=most_usd:usd money"),)
PRESETS = (
    TablePart(
        "preset=name environment=spec.training.environment.id platform=spec.platform.kind "
        "budget=spec.budget_usd:usd title",
    ),
)
PROJECTS = (TablePart("project=slug role archived=archived_at:at name page=url"),)
LINKS = (
    TablePart(
        "link=id:whole kind money:yes last_used=last_used_at:at ends=ends_at:at ended made_by job title"
    ),
)
MADE_LINK = (TablePart("link=id:whole kind title money:yes ends=ends_at:at address=link embed", tall=True),)
MEMBERS = (TablePart("member=id:whole email role you:yes since:at"),)
INVITATIONS = (TablePart("invitation=id:whole email role invited_by ends=ends_at:at"),)
INVITED = (TablePart("invitation=id:whole email role ends=ends_at:at link not_mailed", tall=True),)
