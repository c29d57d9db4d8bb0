"""Texts of alerts and channels, and the tone and icon of each kind and state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Q

from webapp.alerts import mail_consent
from webapp.alerts.models import AlertKind, Channel, ChannelKind, DeliveryState, MailConsent, Severity
from webapp.alerts.senders import mail
from webapp.formatting import Status, Tone, display_usd, format_moment, format_score, plural
from webapp.job_states import Observed
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.reasons import STOPPED_BY_BUDGET
from webapp.jobs.scores import score_name, score_of
from webapp.money.models import Account, AtLine, Budget, Crossing, CrossingKind

ICONS: dict[str, str] = {
    AlertKind.BUDGET: "piggy-bank-fill",
    AlertKind.FORECAST: "graph-up-arrow",
    AlertKind.JOB_STOPPED: "sign-stop-fill",
    AlertKind.JOB_FAILED: "x-octagon-fill",
    AlertKind.JOB_FINISHED: "check-circle-fill",
    AlertKind.BURN: "fire",
    AlertKind.RETRIES: "arrow-repeat",
    AlertKind.NO_STEPS: "hourglass-split",
    AlertKind.ORPHAN: "cloud-slash-fill",
    AlertKind.REPORT: "file-earmark-text-fill",
    AlertKind.BILL: "receipt-cutoff",
    AlertKind.CHANNEL: "send-slash-fill",
    AlertKind.DISK: "device-hdd-fill",
    AlertKind.RULE: "bell-fill",
    AlertKind.TEST: "send",
}
TONES: dict[str, Tone] = {
    Severity.INFO: "running",
    Severity.WARNING: "warning",
    Severity.CRITICAL: "failed",
}
_FINISHED = Observed.SUCCEEDED
SNOOZE_WORDS = (("hour", "For an hour"), ("day", "For a day"), ("change", "Until it gets worse"))


class WayOffered(NamedTuple):
    """One way to add a channel, as the page offers it."""

    way: ChannelKind
    title: str
    words: str
    icon: str


WAYS = (
    WayOffered(ChannelKind.EMAIL, "E-mail", "To addresses of your choice, beside the owners.", "envelope"),
    WayOffered(
        ChannelKind.CHAT,
        "Chat",
        "Slack, Teams, Discord, Telegram and others: paste the address that the service gives you for a channel.",
        "chat-left-text",
    ),
    WayOffered(
        ChannelKind.WEBHOOK,
        "Webhook",
        "A signed JSON message to your own program, repeated until it arrives.",
        "braces",
    ),
)
WAY_ICONS = {offered.way: offered.icon for offered in WAYS}


def is_missing(channel: Channel) -> bool:
    """Whether the channel can send nothing before the operator or its readers act. Pages say so, no alert does."""
    return channel.way == ChannelKind.EMAIL and (not mail.can_send() or bool(mail.why_no_reader(channel)))


def channel_status(channel: Channel) -> Status:
    if not channel.on:
        return Status("waiting", "pause-fill", "Off", "It sends nothing until an owner turns it on.")
    if channel.way == ChannelKind.EMAIL and not mail.can_send():
        return Status("warning", "exclamation-triangle-fill", "Missing", mail.NO_SERVER)
    if channel.way == ChannelKind.EMAIL and (why := mail.why_no_reader(channel)):
        return Status("warning", "exclamation-triangle-fill", "Unconfirmed", why)
    if channel.failures:
        return Status("failed", "x-octagon-fill", "Failing", channel.last_error)
    if channel.last_sent_at is not None:
        return Status("ok", "check-circle-fill", "Working", "The last message got through.")
    return Status("waiting", "circle", "Not used yet", "Send a test message to see it work.")


def readers(channel: Channel) -> list[str]:
    """The channel's addresses, or its place."""
    return mail.addresses(channel) if channel.way == ChannelKind.EMAIL else [channel.place]


class Reader(NamedTuple):
    """An address of a mail channel, and whether mails go there, with tone, icon and text."""

    address: str
    gets_mails: bool
    tone: Tone
    icon: str
    words: str


def mail_readers(channel: Channel) -> list[Reader]:
    """The addresses of a mail channel. Those without mails have the reason."""
    get = set(mail.recipients(channel))
    consents = {consent.address: consent for consent in mail_consent.consents_of(channel.project_id)}
    return [
        Reader(address, True, "ok", "check-lg", "Gets the mails")
        if address in get
        else Reader(address, False, *_no_mails(channel, consents.get(address.lower())))
        for address in mail.addresses(channel)
    ]


def _no_mails(channel: Channel, consent: MailConsent | None) -> tuple[Tone, str, str]:
    if channel.built_in:
        return "warning", "hourglass", "Has not confirmed the address"
    if consent is not None and consent.answer == MailConsent.Answer.NO:
        return "waiting", "x-lg", "Does not want these mails"
    if consent is not None and consent.asked_at:
        return "warning", "hourglass", "Got the mail that asks, and has not answered"
    soon = "soon" if mail.can_send() else "once a mail server is set"
    return "warning", "hourglass", f"Gets a mail that asks, {soon}"


DELIVERY_SHOWN: dict[str, tuple[Tone, str]] = {
    DeliveryState.WAITING: ("waiting", "hourglass"),
    DeliveryState.SENDING: ("running", "arrow-repeat"),
    DeliveryState.SENT: ("ok", "check-lg"),
    DeliveryState.FAILED: ("failed", "x-lg"),
}


def crossing_sentence(row: Crossing) -> str:
    """What was spent of a limit, what happens at the limit, and what to do."""
    payer = row.account or row.budget
    assert payer is not None
    name = payer.job.name if isinstance(payer, Account) else f"The budget {payer.name}"
    spent, limit = display_usd(row.spent_picodollars), display_usd(row.limit_picodollars)
    if row.kind == CrossingKind.FORECAST:
        when = f" at about {format_moment(row.expected_at)}" if row.expected_at else ""
        return f"{name} will reach its limit of {limit}{when}; {spent} is spent. {_what_then(payer)}"
    if row.threshold >= 100:
        return f"{name} has spent all of its {limit}. {_what_then(payer)}"
    past = "past " if 100 * row.spent_picodollars >= (row.threshold + 1) * row.limit_picodollars else ""
    return f"{name} has spent {spent} of {limit}, {past}{row.threshold} % of its limit. {_what_then(payer)}"


def rearmed_sentence(payer: Account | Budget) -> str:
    """What was spent of a limit that was raised or reset."""
    spent = display_usd(payer.spent_picodollars + payer.overrun_picodollars)
    return f"{spent} of {display_usd(payer.limit_picodollars)} is spent now."


def _what_then(payer: Account | Budget) -> str:
    """What happens at the limit, and what people can do about it."""
    if isinstance(payer, Account):
        return "At the limit it saves a checkpoint and pauses. Raise its budget if it should continue, or stop it now."
    line = {
        AtLine.FEWER: "From 80 % on its jobs get fewer actors; at the limit they save a checkpoint and pause.",
        AtLine.DRAIN: "At the limit its jobs end their round, save a checkpoint and pause.",
        AtLine.STOP: "At the limit its jobs pause; the last round may be cut off.",
    }
    return f"{line[AtLine(payer.at_line)]} Raise the budget if they should continue."


def group_end_sentence(group: JobGroup) -> str:
    """How the jobs of a group ended."""
    counts = Counter(Observed(observed) for observed in group.jobs.values_list("observed", flat=True))
    others = ", ".join(
        f"{count:,} {state.label.lower()}" for state, count in counts.items() if state != _FINISHED
    )
    all_of_them = f"All {plural(counts[_FINISHED], 'job')}" if counts[_FINISHED] > 1 else "The job"
    ended = f"{counts[_FINISHED]:,} of {plural(counts.total(), 'job')}" if others else all_of_them
    return f"{ended} of {group.name} finished{f' ({others})' if others else ''}. Its page compares them."


def group_fallen_sentence(group: JobGroup, observed: Observed) -> str:
    """Which jobs of a group failed or met their budget, for which reasons, and what to do next."""
    jobs = group.jobs.filter(STOPPED_BY_BUDGET if observed == Observed.PAUSED else Q(observed=observed))
    fell = list(jobs.only("name", "reason", "observed").order_by("since", "pk"))
    reasons = Counter(job.reason for job in fell if job.reason)
    first = [
        words if count == len(fell) else f"{plural(count, 'job')}: {words}"
        for words, count in reasons.most_common(2)
    ]
    if len(reasons) > len(first):
        first.append(f"There are {plural(len(reasons) - len(first), 'further reason')}.")
    total = group.jobs.count()
    whose = f"{len(fell):,} of {plural(total, 'job')} of {group.name}" if total > 1 else f"{group.name}"
    if observed == Observed.PAUSED:
        what, then = "stopped at the budget.", "Raise that budget and resume them on their pages."
    else:
        what, then = "failed.", "The group's page leads to each; a clone starts from the same settings."
    return " ".join([f"{whose} {what}", *first, then])


GOES_ON = "The job is no longer stopped."


def room_again_sentence(free: Sequence[int]) -> str:
    """What is free for the next rounds of jobs that their budget had stopped."""
    if len(free) == 1:
        return f"There is room for its next round again: {display_usd(free[0])} is free. Its page resumes it."
    least = display_usd(min(free))
    return f"There is room for their next rounds again: at least {least} is free for each. Their pages resume them."


def end_sentence(job: Job) -> str:
    """How a job ended, and what to do next."""
    reason = job.reason or ""
    match job.observed:
        case Observed.FAILED:
            return f"{job.name} failed. {reason} Its page shows what led to it; a clone starts from the same settings."
        case Observed.PAUSED:
            if job.has_checkpoint:
                then = "Raise that budget and it resumes from there."
                return f"{job.name} stopped at its budget with a checkpoint. {reason} {then}"
            then = "Raise that budget and it starts again."
            return f"{job.name} stopped at its budget before it had a checkpoint. {reason} {then}"
    training = job.training_facts
    steps = (
        f"{job.total_progress:,} {training.progress_unit}"
        if job.total_progress
        else f"no {training.progress_unit}"
    )
    reached = score_of(job)
    article = "an" if reached.basis == "evaluation" else "a"
    score = (
        f" and {article} {score_name(training.score.name, reached.basis)} of"
        f" {format_score(reached.value, training.score.decimals)}"
        if reached.basis
        else ""
    )
    return f"{job.name} finished after {steps}{score}. {reason}".strip()
