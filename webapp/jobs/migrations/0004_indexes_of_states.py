"""Indexes for what runs, what changed last and what was launched on which cloud, in projects with many jobs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0003_films_after_evaluations")]

    operations = [
        migrations.AddIndex("job", models.Index(fields=["project", "observed"], name="job_by_state")),
        migrations.AddIndex("job", models.Index(fields=["project", "-since"], name="job_by_change")),
        migrations.AddIndex("job", models.Index(fields=["project", "cloud"], name="job_by_cloud")),
    ]
