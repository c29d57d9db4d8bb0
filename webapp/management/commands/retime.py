"""`manage.py retime RUN --profile P`: a stored run's time and bill on another cloud, without training again."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from cloud.money.billing.price_book import PriceBook, PriceError, UnknownSku
from cloud.money.billing.work import WorkError
from cloud.timing.numbers.quantity import ProfileError
from cloud.timing.place import TimingPlace
from webapp.jobs.billing import retiming
from webapp.jobs.billing.retiming import RunToRetime, words
from webapp.management.command import LineCommand

_MOST_DRAWS = 10_000


class Command(LineCommand):
    help = (
        "Times and prices a stored run again from the record of its work: a job's id, or a file that "
        "`train --work` wrote. On the cloud where it was simulated the result is what it was, to the last digit."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("run", metavar="RUN", help="a job's id, or a file of work")
        add("--profile", metavar="P", help="a cloud by name, or a file; its own if left out")
        add("--stack", metavar="S", help="a stack by name, or a file; its own if left out")
        add("--prices", type=Path, metavar="FILE", help="a file of prices that go before those we know")
        add("--against", metavar="P", help="another cloud: which is cheaper, and which number turns that")
        add("--draws", type=int, default=0, metavar="N", help="draw every number from its range N times")
        add("--seed", type=int, default=0, metavar="SEED", help="of the draws (0)")
        add("--json", action="store_true", dest="as_json", help="one JSON document")

    def handle(self, *, run: str, **options: Any) -> None:
        try:
            document = _document(run, options)
        except (WorkError, ProfileError, PriceError, UnknownSku, OSError) as error:
            self.refuse(str(error))
        self.stdout.write(json.dumps(document) if options["as_json"] else "\n".join(words(document)))


def _document(name: str, options: dict[str, Any]) -> dict[str, Any]:
    if not 0 <= options["draws"] <= _MOST_DRAWS:
        raise WorkError(f"--draws must be between 0 and {_MOST_DRAWS:,}")
    run = retiming.stored_run(name)
    if options["profile"] is None and not run.simulated:
        raise WorkError(f"{name} did not run on a simulated cloud: say with --profile where it should")
    book = PriceBook.load()
    if options["prices"] is not None:
        book = book.merge(PriceBook.load(options["prices"]))
    place = _place(run, options["profile"], options["stack"], book)
    against = _place(run, options["against"], options["stack"], book) if options["against"] else None
    document = retiming.retime_run(run, place)
    if options["draws"]:
        document |= retiming.ranges(run, place, against, options["draws"], options["seed"])
    if against is not None:
        document["verdict"] = document.get("verdict", {}) | retiming.verdict(run, place, against)
    return document


def _place(run: RunToRetime, profile: str | None, stack: str | None, book: PriceBook) -> TimingPlace:
    return TimingPlace.named(profile or run.options.profile, stack or run.options.stack, run.options, book)
