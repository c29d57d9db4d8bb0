"""What is said of a limit below what is spent already."""

from __future__ import annotations

import pytest

from tests.factories import make_running_job
from tests.ledger_contract import reservation
from webapp.money.budgets import BudgetRefused, change_budget, create_budget
from webapp.money.ledger import DatabaseLedger

pytestmark = pytest.mark.django_db
_USD = 10**12


def test_a_limit_below_what_is_spent() -> None:
    job, epoch = make_running_job()
    DatabaseLedger(job.account.pk, epoch).reserve([reservation("a", _USD)])
    facts = {"project": job.project, "user": job.created_by, "name": "March", "thresholds": []}
    with pytest.raises(BudgetRefused) as refused:
        create_budget(**facts, limit_picodollars=_USD // 2)
    assert str(refused.value) == (
        "$1.00 of it is spent or set aside for running jobs already; the budget must be more."
    )
    budget = create_budget(**facts, limit_picodollars=2 * _USD)
    with pytest.raises(BudgetRefused) as refused:
        change_budget(budget=budget, limit_picodollars=_USD // 2)
    assert str(refused.value) == (
        "$1.00 of it is spent or set aside for running jobs already; the limit must be more."
    )
