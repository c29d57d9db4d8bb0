"""A round's report is stored once, in its event."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def _mark(apps: Any, schema_editor: Any) -> None:
    """Number the events of the rounds that no resume has replaced: the last ones of each number."""
    events, rounds = apps.get_model("jobs", "Event").objects, apps.get_model("jobs", "Round").objects
    for job_id in rounds.order_by().values_list("job_id", flat=True).distinct():
        epochs = dict(rounds.filter(job_id=job_id).values_list("round_no", "epoch"))
        reported = events.filter(job_id=job_id, kind="round").order_by("-seq")
        found = [
            events.model(pk=pk, round_no=number, epoch=epochs.pop(number))
            for pk, number in reported.values_list("pk", "payload__report__round_no").iterator(2_000)
            if number in epochs
        ]
        events.bulk_update(found, ["round_no", "epoch"], batch_size=500)


class Migration(migrations.Migration):
    dependencies = [("jobs", "0002_after_release_0_1")]

    operations = [
        migrations.AddField("event", "round_no", models.BigIntegerField(null=True)),
        migrations.AddField("event", "epoch", models.BigIntegerField(null=True)),
        migrations.RunPython(_mark, migrations.RunPython.noop),
        migrations.DeleteModel("Round"),
        migrations.AddConstraint(
            "event", models.UniqueConstraint(fields=["job", "round_no"], name="event_of_round_once")
        ),
        migrations.CreateModel(
            "Round", [], options={"proxy": True, "indexes": [], "constraints": []}, bases=("jobs.event",)
        ),
    ]
