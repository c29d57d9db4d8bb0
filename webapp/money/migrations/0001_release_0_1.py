"""All tables of the app in release 0.1.0. An older installation needs the migrations named in `replaces` first."""

import django.db.models.deletion
import django.db.models.expressions
import webapp.money.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("money", "0001_initial"),
        ("money", "0002_bill_sheet"),
        ("money", "0003_budgets"),
        ("money", "0004_forecast_factors"),
        ("money", "0005_charge_indexes"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0001_release_0_1"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("jobs", "0001_release_0_1"),
    ]

    operations = [
        migrations.CreateModel(
            name="BillSheet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("round_no", models.BigIntegerField()),
                ("total_picodollars", models.BigIntegerField()),
                ("final", models.BooleanField(default=False)),
                ("again_at", models.DateTimeField(blank=True, null=True)),
                ("document", models.JSONField(default=dict)),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="bill", to="jobs.job"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Budget",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("everything", "Everything"),
                            ("project", "This project"),
                            ("user", "A person"),
                            ("cloud", "A cloud"),
                            ("tag", "A tag"),
                            ("group", "A group of jobs"),
                        ],
                        max_length=12,
                    ),
                ),
                ("cloud", models.CharField(blank=True, default="", max_length=30)),
                (
                    "period",
                    models.CharField(
                        choices=[("total", "In all"), ("monthly", "A month"), ("weekly", "A week")],
                        default="total",
                        max_length=10,
                    ),
                ),
                ("period_start", models.DateTimeField()),
                ("limit_picodollars", models.BigIntegerField()),
                ("reserved_picodollars", models.BigIntegerField(default=0)),
                ("spent_picodollars", models.BigIntegerField(default=0)),
                ("overrun_picodollars", models.BigIntegerField(default=0)),
                (
                    "at_line",
                    models.CharField(
                        choices=[
                            ("fewer", "From 80 % on with fewer actors, then as below"),
                            ("drain", "End the round, save a checkpoint, pause"),
                            ("stop", "Use it up: the last round may be cut off"),
                        ],
                        default="drain",
                        max_length=10,
                    ),
                ),
                ("thresholds", models.JSONField(default=webapp.money.models.default_thresholds)),
                ("arming", models.IntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.jobgroup",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="budgets",
                        to="accounts.project",
                    ),
                ),
                (
                    "tag",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.tag",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("closed_at", None)),
                        fields=["project", "scope"],
                        name="budget_open",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("limit_picodollars__gt", 0)), name="budget_limit_positive"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("overrun_picodollars__gte", 0),
                            ("reserved_picodollars__gte", 0),
                            ("spent_picodollars__gte", 0),
                        ),
                        name="budget_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "limit_picodollars__gte",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("spent_picodollars"), "+", models.F("reserved_picodollars")
                                ),
                            )
                        ),
                        name="budget_within_limit",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("project__isnull", True), ("scope", "everything")),
                            models.Q(("project__isnull", False), ("scope", "project")),
                            models.Q(("scope", "user"), ("user__isnull", False)),
                            models.Q(("scope", "cloud"), models.Q(("cloud", ""), _negated=True)),
                            models.Q(("project__isnull", False), ("scope", "tag"), ("tag__isnull", False)),
                            models.Q(
                                ("group__isnull", False), ("project__isnull", False), ("scope", "group")
                            ),
                            _connector="OR",
                        ),
                        name="budget_scope_named",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Account",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("limit_picodollars", models.BigIntegerField()),
                ("granted_picodollars", models.BigIntegerField(default=0)),
                ("reserved_picodollars", models.BigIntegerField(default=0)),
                ("spent_picodollars", models.BigIntegerField(default=0)),
                ("overrun_picodollars", models.BigIntegerField(default=0)),
                ("frozen", models.BooleanField(default=False)),
                ("arming", models.IntegerField(default=0)),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="account", to="jobs.job"
                    ),
                ),
                ("budgets", models.ManyToManyField(related_name="accounts", to="money.budget")),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("limit_picodollars__gt", 0)), name="account_limit_positive"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reserved_picodollars__gte", 0)),
                        name="account_reserved_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("spent_picodollars__gte", 0)), name="account_spent_not_negative"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("overrun_picodollars__gte", 0)),
                        name="account_overrun_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "limit_picodollars__gte",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("spent_picodollars"), "+", models.F("reserved_picodollars")
                                ),
                            )
                        ),
                        name="account_within_limit",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "granted_picodollars__gte",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("spent_picodollars"), "+", models.F("reserved_picodollars")
                                ),
                            ),
                            ("granted_picodollars__lte", models.F("limit_picodollars")),
                        ),
                        name="account_within_grant",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Charge",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("epoch", models.BigIntegerField()),
                ("name", models.CharField(max_length=120)),
                ("round_no", models.BigIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("rollout", "Rollout"),
                            ("evaluate", "Evaluation"),
                            ("update", "Update"),
                            ("rent", "Rent"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("settled", "Settled"), ("released", "Released")],
                        default="open",
                        max_length=10,
                    ),
                ),
                (
                    "basis",
                    models.CharField(
                        blank=True,
                        choices=[("metered", "Metered"), ("assumed", "Assumed")],
                        default="",
                        max_length=10,
                    ),
                ),
                ("reserved_picodollars", models.BigIntegerField()),
                ("settled_picodollars", models.BigIntegerField(blank=True, null=True)),
                ("assumed_picodollars", models.BigIntegerField(blank=True, null=True)),
                ("usage", models.JSONField(blank=True, default=dict)),
                ("lines", models.JSONField(blank=True, default=list)),
                ("opened_at", models.DateTimeField()),
                ("resolved_at", models.DateTimeField(blank=True, null=True)),
                ("corrected_at", models.DateTimeField(blank=True, null=True)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="charges",
                        to="money.account",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "open")), fields=["account"], name="charge_open"
                    ),
                    models.Index(fields=["account", "round_no"], name="charge_of_round"),
                    models.Index(fields=["account", "basis"], name="charge_by_basis"),
                    models.Index(fields=["resolved_at"], name="charge_resolved"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("account", "epoch", "name"), name="charge_once"),
                    models.CheckConstraint(
                        condition=models.Q(("reserved_picodollars__gte", 0)),
                        name="charge_reserved_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("settled_picodollars__gte", 0), ("state", "settled")),
                            models.Q(
                                models.Q(("state", "settled"), _negated=True),
                                ("settled_picodollars__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="charge_settled_has_amount",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Crossing",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(choices=[("actual", "Spent"), ("forecast", "Forecast")], max_length=10),
                ),
                ("threshold", models.IntegerField()),
                ("arming", models.IntegerField()),
                ("at", models.DateTimeField()),
                ("spent_picodollars", models.BigIntegerField()),
                ("limit_picodollars", models.BigIntegerField()),
                ("expected_at", models.DateTimeField(blank=True, null=True)),
                ("handled_at", models.DateTimeField(blank=True, null=True)),
                (
                    "account",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="crossings",
                        to="money.account",
                    ),
                ),
                (
                    "budget",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="crossings",
                        to="money.budget",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("handled_at", None)), fields=["at"], name="crossing_to_tell"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "kind", "threshold", "arming"), name="crossing_of_account_once"
                    ),
                    models.UniqueConstraint(
                        fields=("budget", "kind", "threshold", "arming"), name="crossing_of_budget_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("account__isnull", False), ("budget__isnull", True)),
                            models.Q(("account__isnull", True), ("budget__isnull", False)),
                            _connector="OR",
                        ),
                        name="crossing_of_one",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LaunchForecast",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("alike", models.CharField(db_index=True, max_length=64)),
                ("past_runs", models.IntegerField(default=0)),
                ("cost_p10_picodollars", models.BigIntegerField()),
                ("cost_p50_picodollars", models.BigIntegerField()),
                ("cost_p90_picodollars", models.BigIntegerField()),
                ("time_p10_s", models.FloatField()),
                ("time_p50_s", models.FloatField()),
                ("time_p90_s", models.FloatField()),
                ("first_round_picodollars", models.BigIntegerField()),
                ("cost_factor", models.FloatField(default=1.0)),
                ("time_factor", models.FloatField(default=1.0)),
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="launch_forecast",
                        to="jobs.job",
                    ),
                ),
            ],
        ),
    ]
