"""The table of counters."""

from __future__ import annotations

from django.db import models


class Counted(models.Model):
    """A value under a key, until it expires. Written by `counters`."""

    key = models.CharField(max_length=250, primary_key=True)
    value = models.JSONField()
    expires_unix_s = models.FloatField(null=True, db_index=True)

    def __str__(self) -> str:
        return self.key
