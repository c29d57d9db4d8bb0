"""Sessions are found by a hash of their key. Those that exist stay valid: their rows get the hash of theirs."""

import hashlib

from django.db import migrations


def _hash_keys(apps, schema_editor):
    sessions = apps.get_model("sessions", "Session").objects
    for key in list(sessions.values_list("session_key", flat=True)):
        sessions.filter(pk=key).update(session_key=hashlib.sha256(key.encode()).hexdigest()[:40])


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_archived_projects"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        # A hash does not give the key back: after a step back, people sign in again.
        migrations.RunPython(_hash_keys, migrations.RunPython.noop, elidable=True),
    ]
