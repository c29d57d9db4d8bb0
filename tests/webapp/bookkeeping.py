"""What must be true of a job's rows at any moment, whatever died."""

from webapp.jobs.models import Job
from webapp.money.models import Charge, ChargeState


def assert_whole(job: Job) -> None:
    """Nothing twice, nothing missing, nothing owed."""
    seqs = list(job.events.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, job.last_seq + 1))
    rounds = list(job.rounds.order_by("round_no").values_list("round_no", flat=True))
    assert rounds == list(range(1, job.round_no + 1))
    recorded: list[int] = []
    for kind, no, kept in (
        job.events.filter(kind__in=("round", "resumed"))
        .order_by("seq")
        .values_list("kind", "payload__report__round_no", "payload__from_round")
    ):
        recorded = recorded[:kept] if kind == "resumed" else [*recorded, no]
    assert recorded == rounds
    account = job.account
    account.refresh_from_db()
    assert account.spent_picodollars + account.reserved_picodollars <= account.limit_picodollars
    settled = Charge.objects.filter(account=account, state=ChargeState.SETTLED)
    assert account.spent_picodollars == sum(settled.values_list("settled_picodollars", flat=True))
    opened = Charge.objects.filter(account=account, state=ChargeState.OPEN)
    assert account.reserved_picodollars == sum(opened.values_list("reserved_picodollars", flat=True))
