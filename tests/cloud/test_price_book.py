"""Rows with validity and tiers, a person's own book, and files that are refused with their line."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from cloud.accounts.provision import regions
from cloud.money.billing import price_book
from cloud.money.billing.price_book import PriceBook, PriceError, PriceRow, UnknownPrice, UnknownSku
from cloud.money.pricing import PricedPart, price_line
from cloud.platforms.aws_lambda import LambdaOptions

BOOK = PriceBook.load()
DAY = datetime.date


def row(usd: str, **changes: object) -> PriceRow:
    fields: dict[str, object] = {
        "sku": "thing",
        "region": "here",
        "unit": "h",
        "usd": usd,
        "as_of": DAY(2026, 1, 1),
        "source": "made up",
        "kind": "list",
    }
    return PriceRow(**{**fields, **changes})  # type: ignore[arg-type]


def written(folder: Path, **changes: str) -> Path:
    """A file of one good price with some of its lines changed; the price begins in line 2, `usd` is in line 6."""
    lines = {
        "sku": '"thing"',
        "region": '"here"',
        "unit": '"h"',
        "usd": '"1.5"',
        "as_of": "2026-01-01",
        "source": '"made up"',
        "kind": '"list"',
    }
    text = "\n".join(f"{key} = {value}" for key, value in {**lines, **changes}.items() if value)
    path = folder / "own.toml"
    path.write_text(f"# My prices\n[[price]]\n{text}\n")
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": ""}, r"^own\.toml:2: source: Field required"),
        ({"source": '"?"'}, r"^own\.toml:8: source: .*at least 3"),
        ({"usd": '"-0.1"'}, r"^own\.toml:6: usd: .*greater than or"),
        ({"usd": '"cheap"'}, r"^own\.toml:6: usd: .*decimal"),
        ({"usd": "nan"}, r"^own\.toml:6: usd: .*finite"),
        ({"usd": ""}, r"^own\.toml:2: usd: Field required"),
        ({"kind": '"guess"'}, r"^own\.toml:9: kind: .*'paper', 'custom' or 'unverified'"),
        ({"as_of": '"some day"'}, r"^own\.toml:7: as_of: .*date"),
        ({"as_of": "2026-02-30"}, r"^own\.toml:7: "),
        ({"discount": '"0.1"'}, r"^own\.toml:10: discount: "),
        ({"from_quantity": "-1"}, r"^own\.toml:10: from_quantity: "),
        (
            {"valid_from": "2026-02-01", "valid_to": "2026-01-01"},
            r"^own\.toml:2: valid_to 2026-01-01 is before",
        ),
        ({"usd": '"1'}, r"^own\.toml:6: "),
        ({"region": '["here", ""]'}, r"^own\.toml:4: region: "),
        ({"region": "[]"}, r"^own\.toml:4: region: "),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(changes: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(PriceError, match=message):
        PriceBook.load(written(tmp_path, **changes))


def test_overlapping_validity_is_refused_with_both_lines(tmp_path: Path) -> None:
    first = written(tmp_path, valid_to="2026-06-30").read_text()
    second = written(tmp_path, valid_from="2026-06-30").read_text()
    path = tmp_path / "own.toml"
    path.write_text(first + second)
    with pytest.raises(PriceError, match=r"^own\.toml:12: thing .* own\.toml:2, valid to 2026-06-30"):
        PriceBook.load(path)
    # Also when they stand in two files of a folder.
    path.write_text(second)
    (tmp_path / "more.toml").write_text(first)
    with pytest.raises(PriceError, match=r"^own\.toml:2: .*see more\.toml:2"):
        PriceBook.load(tmp_path)


def test_what_is_no_price_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('# Mine\n\n[[prices]]\nsku = "x"\n')
    with pytest.raises(PriceError, match=r"^own\.toml:3: prices .* \[\[free\]\]"):
        PriceBook.load(path)
    missing = tmp_path / "missing.toml"
    with pytest.raises(PriceError, match=r"^missing\.toml:1: "):
        PriceBook.load(missing)


def test_prices_change_on_their_day() -> None:
    book = PriceBook(
        [
            row("2", valid_to=DAY(2026, 5, 31)),
            row("1", valid_from=DAY(2026, 6, 1), valid_to=DAY(2027, 5, 31), as_of=DAY(2026, 7, 1)),
        ]
    )
    assert book.row("thing", "here", on=DAY(2026, 5, 31)).usd == 2
    assert book.row("thing", "here", on=DAY(2026, 6, 1)).usd == 1
    assert book.row("thing", "here").usd == 1, "without a day: as the book stood when it was last read"
    with pytest.raises(UnknownSku, match=r"on 2028-01-01; .* 2026-06-01 to 2027-05-31, to 2026"):
        book.row("thing", "here", on=DAY(2028, 1, 1))


def test_tiers_come_in_order_and_the_first_is_the_price() -> None:
    assert [(tier.from_quantity, tier.usd) for tier in BOOK.tiers("lambda.duration.x86")] == [
        (0, Decimal("0.0000166667")),
        (6_000_000_000, Decimal("0.000015")),
        (15_000_000_000, Decimal("0.0000133334")),
    ]
    assert BOOK.row("lambda.duration.x86").from_quantity == 0
    with pytest.raises(UnknownPrice):
        price_line(BOOK.tiers("lambda.duration.arm")[2], 1)


def test_an_unknown_price_says_unknown_and_is_never_nothing() -> None:
    for sku, region in (
        ("aci.vcpu.linux", "westus2"),
        ("function.gpu", "us-east-1"),
        ("paper.minionsrl", "paper"),
    ):
        with pytest.raises(UnknownPrice, match=rf"the price of '{sku}' in {region} is unknown: "):
            BOOK.row(sku, region)
    listed = [item for item in BOOK.rows() if item.usd is None]
    assert len(listed) >= 4, "they are in the book, to be shown as unknown"
    for item in listed:
        for ask in (lambda r: price_line(r, 0), lambda r: r.price, PricedPart):
            with pytest.raises(UnknownPrice, match="unknown"):
                ask(item)


def test_ones_own_book_lies_over_the_list(tmp_path: Path) -> None:
    own = PriceBook.load(written(tmp_path, sku='"c5.4xlarge"', region='"us-east-1"', kind='"custom"'))
    book = BOOK.merge(own)
    assert (book.row("c5.4xlarge").usd, book.row("c5.4xlarge").kind) == (Decimal("1.5"), "custom")
    assert book.row("c5.2xlarge") == BOOK.row("c5.2xlarge")
    assert BOOK.row("c5.4xlarge").usd == Decimal("0.68")
    assert len(book.rows()) == len(BOOK.rows())
    cheaper = PriceBook([row("0.00001", sku="lambda.duration.x86", region="us-east-1", unit="GB-s")])
    assert len(BOOK.merge(cheaper).tiers("lambda.duration.x86")) == 1, "the list's tiers do not mix with it"


def test_the_book_has_what_the_papers_and_platforms_need() -> None:
    expected = {
        ("aci.vcpu.linux", "eastus"): "0.0405",
        ("aci.memory.linux", "swedencentral"): "0.00511",
        ("lambda.provisioned.arm", "us-east-1"): "0.0000033334",
        ("c5.2xlarge", "us-east-1"): "0.34",
        ("c5.4xlarge.spot", "us-east-1"): "0.341",
        ("m4.large", "us-east-1"): "0.1",
        ("m4.xlarge", "us-east-1"): "0.2",
        ("m4.2xlarge", "us-east-1"): "0.4",
        ("Standard_NC6s_v3", "eastus"): "3.06",
        ("Standard_E16-8s_v5", "eastus"): "1.008",
        ("paper.vm_overhead", "paper"): "17.92",
        ("paper.serverless_actor", "paper"): "0.0000167",
    }
    assert {place: str(BOOK.row(*place).usd) for place in expected} == expected
    assert BOOK.row("Standard_E16-8s_v5", "eastus").kind == "unverified"


def test_the_regions_that_are_offered_first_have_prices_for_all_that_an_actor_is_paid_by() -> None:
    book = PriceBook.load()
    for cloud in ("aws", "azure"):
        good = regions.priced(cloud, book)
        assert good
        assert [code for code, _ in regions.offered(cloud, book)][: len(good)] == good
        assert all("no prices yet" in words for _, words in regions.offered(cloud, book)[len(good) :])
    for region in regions.priced("aws", book):
        assert LambdaOptions(region=region).tariff(book, 1024).actor is not None
    assert not regions.has_prices("aws", "mars-1", book)
    with pytest.raises(UnknownPrice):  # looked for and not found: known to be unknown
        LambdaOptions(region="eu-central-1", provisioned=1).tariff(book, 1024)


# An operator's own prices


def write_operators_prices(path: Path, region: str) -> Path:
    rows = [("lambda.duration.x86", "GB-s", "0.00002"), ("lambda.request", "request", "0.0000003")]
    path.write_text(
        "".join(
            f'[[price]]\nsku = "{sku}"\nregion = "{region}"\nunit = "{unit}"\nusd = "{usd}"\n'
            f'as_of = 2026-11-20\nsource = "read by the operator"\nkind = "list"\n\n'
            for sku, unit, usd in rows
        )
    )
    return path


@pytest.fixture
def operators(tmp_path: Path) -> Iterator[Path]:
    """A file of prices in a region that the book lacks, in use."""
    path = write_operators_prices(tmp_path / "ours.toml", "xx-mars-1")
    price_book.set_operator_prices(path)
    yield path
    price_book.set_operator_prices(None)


def test_an_operator_gives_prices_of_a_region_that_the_book_lacks(operators: Path) -> None:
    with pytest.raises(UnknownSku):
        BOOK.row("lambda.duration.x86", "xx-mars-1")
    book = PriceBook.load()
    given = book.row("lambda.duration.x86", "xx-mars-1")
    assert (given.usd, given.kind) == (Decimal("0.00002"), "custom"), "theirs, whatever the file calls it"
    assert book.row("c5.2xlarge") == BOOK.row("c5.2xlarge")
    assert "xx-mars-1" in regions.priced("aws", book)
    assert LambdaOptions(region="xx-mars-1").tariff(book, 1024).actor is not None
    skus = ["lambda.duration.x86", "lambda.request", "c5.2xlarge"]
    assert [row.sku for row in book.own(skus, "xx-mars-1")] == skus[:2]
    assert book.own(skus, "us-east-1") == []
    price_book.set_operator_prices(None)
    assert PriceBook.load() is BOOK


def test_a_region_that_no_one_listed_is_offered_with_its_prices(operators: Path) -> None:
    operators.with_name("more.toml").write_text(operators.read_text().replace("xx-mars-1", "xx-mars-2"))
    price_book.set_operator_prices(operators.with_name("more.toml"))
    offered = dict(regions.offered("aws", PriceBook.load()))
    assert offered["xx-mars-2"].startswith("by prices of")


def test_a_wrong_file_of_the_operator_is_refused_with_its_line_and_ours_stay(tmp_path: Path) -> None:
    with pytest.raises(PriceError, match=r"^own\.toml:6: usd: .*greater than or"):
        price_book.set_operator_prices(written(tmp_path, usd='"-0.1"'))
    assert PriceBook.load() is BOOK


def test_documents_name_the_regions_that_the_book_has() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "clouds.md").read_text("utf-8")
    assert text.count("regions -->`") == 2, "one list a cloud"
    assert regions.with_regions(text) == text, (
        "write it again: python -m cloud.accounts.provision.regions docs/clouds.md"
    )
