import pytest

from cloud.money.ledger import MemoryLedger
from tests.ledger_contract import LedgerContract, MakeLedger, reservation, settlement


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def make_ledger(self) -> MakeLedger:
        return MemoryLedger

    def test_tells_overrun_and_settlements(self) -> None:
        ledger = MemoryLedger(100)
        ledger.reserve([reservation("a", 10)])
        ledger.settle([settlement("a", 15)])
        assert ledger.overrun_picodollars == 5
        assert ledger.frozen
        assert [booked.id for booked in ledger.settlements()] == ["a"]

    def test_a_negative_budget_is_refused(self) -> None:
        with pytest.raises(ValueError, match="negative"):
            MemoryLedger(-1)
