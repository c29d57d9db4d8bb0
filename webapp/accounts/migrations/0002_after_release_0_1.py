"""What changed since release 0.1.0: projects may be archived; an invitation may create one account where sign-up is
closed; sessions are found by a hash of their key, and those that exist stay valid, as their rows get the hash of theirs.
"""

import hashlib

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def _hash_keys(apps, schema_editor):
    sessions = apps.get_model("sessions", "Session").objects
    for key in list(sessions.values_list("session_key", flat=True)):
        sessions.filter(pk=key).update(session_key=hashlib.sha256(key.encode()).hexdigest()[:40])


class Migration(migrations.Migration):
    replaces = [
        ("accounts", "0002_archived_projects"),
        ("accounts", "0003_hashed_session_keys"),
    ]

    dependencies = [
        ("accounts", "0001_release_0_1"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.AddField("project", "archived_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField(
            "invitation",
            "account",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        # A hash does not give the key back: after a step back, people sign in again.
        migrations.RunPython(_hash_keys, migrations.RunPython.noop, elidable=True),
    ]
