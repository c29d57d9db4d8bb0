"""Tables about mails: consent by people outside a project, and the use of hourly limits."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class MailConsent(models.Model):
    """Whether a person outside a project agreed to get its alerts by mail.

    `ask_at`: when to send the consent mail, null once it was sent. No other mail is sent before an answer.
    """

    class Answer(models.TextChoices):
        NONE = "", "No answer"
        YES = "yes", "Agreed"
        NO = "no", "Declined"

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="mail_consents")
    address = models.EmailField()
    ask_at = models.DateTimeField(null=True, blank=True)
    attempts = models.IntegerField(default=0)
    asked_at = models.DateTimeField(null=True, blank=True)
    answer = models.CharField(max_length=3, choices=Answer, blank=True, default=Answer.NONE)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["ask_at"], condition=Q(ask_at__isnull=False), name="mail_consent_to_ask"),
            models.Index(fields=["address", "asked_at"], name="mail_consent_of_address"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["project", "address"], name="mail_consent_once"),
            models.CheckConstraint(
                condition=Q(answer__in=["", "yes", "no"]), name="mail_consent_answer_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.address} and {self.project_id}: {self.get_answer_display()}"


class HourlyUse(models.Model):
    """The use of one of a project's `hourly_limits`. Without a project, of the installation's."""

    class What(models.TextChoices):
        MAIL = "mail", "Mails"
        TEST = "test", "Test messages"

    project = models.ForeignKey(
        "accounts.Project", on_delete=models.CASCADE, related_name="+", null=True, blank=True
    )
    what = models.CharField(max_length=4, choices=What)
    at = models.DateTimeField()
    count = models.IntegerField()

    class Meta:
        indexes = [models.Index(fields=["project", "what", "at"], name="hourly_use_of_project")]
        constraints = [
            models.CheckConstraint(condition=Q(what__in=["mail", "test"]), name="hourly_use_known"),
            models.CheckConstraint(condition=Q(count__gt=0), name="hourly_use_is_some"),
        ]

    def __str__(self) -> str:
        return f"{self.count} of {self.what} by {self.project_id}"
