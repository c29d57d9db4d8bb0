"""Facts about machines, and that every machine in the price book has them."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from cloud.money.billing.price_book import PriceBook, UnknownSku
from cloud.timing.numbers import machines
from cloud.timing.numbers.machines import MachineError

GOOD = '[[machine]]\nsku = "x"\ncloud = "aws"\nvcpu = 2\nmemory_gb = 4\nsource = "made up"\n'


def test_every_machine_with_a_price_has_its_facts() -> None:
    priced = {row.sku for row in PriceBook.load().rows() if row.unit == "h" and row.region != "paper"}
    assert {machines.machine(sku).sku for sku in priced} == set(machines.load())
    assert machines.machine("c5.4xlarge.spot") is machines.machine("c5.4xlarge")


def test_what_a_machine_is() -> None:
    large = machines.machine("p3.8xlarge")
    assert (large.vcpu, large.gpus, large.gpu) == (32, 4, "V100")
    assert machines.machine("Standard_NC6s_v3").gone_since == datetime.date(2025, 9, 30)
    with pytest.raises(UnknownSku, match=r"no machine named 'c5\.4xlrage'; did you mean c5\.4xlarge"):
        machines.machine("c5.4xlrage")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("vcpu = 2", "vcpu = 0"), r"^own\.toml:4: vcpu: "),
        (GOOD.replace('source = "made up"\n', ""), r"^own\.toml:1: source: "),
        (GOOD + "gpus = 1\n", r"^own\.toml:1: 1 GPUs of the kind ''"),
        (GOOD + "wheels = 4\n", r"^own\.toml:7: wheels: "),
        (GOOD + "\n" + GOOD, r"^own\.toml:8: x .* twice"),
    ],
)
def test_a_wrong_list_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(MachineError, match=message):
        machines.load(path)
