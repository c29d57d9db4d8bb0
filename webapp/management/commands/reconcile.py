"""`manage.py reconcile`: scan every connected account now, and end unused resources."""

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from webapp.clock import SYSTEM_CLOCK
from webapp.resources import queries, scanner
from webapp.resources.scanner import ScanResult


class Command(BaseCommand):
    help = (
        "Compare the resources in the connected accounts with those that should run, end unused ones, and report it."
        " Exit code 1 if an account could not be scanned."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--dry-run", action="store_true", help="report what would be done, and do nothing")
        add("--json", action="store_true", help="one JSON document instead of sentences")
        add("--connection", help="only this one, by its id")
        add("--within", type=float, metavar="SECONDS", help="begin no further scan after so long")

    def handle(self, **options: Any) -> None:
        began = SYSTEM_CLOCK.now()
        within = None if options["within"] is None else timedelta(seconds=options["within"])
        results: list[ScanResult | None] = []
        later = 0
        for connection in scanner.scanned_connections():
            if options["connection"] not in (None, connection.pk):
                continue
            if within is not None and SYSTEM_CLOCK.now() - began > within:
                later += 1
                continue
            results.append(scanner.scan(connection, dry_run=options["dry_run"]))
        seen = [result for result in results if result is not None]
        if options["json"]:
            self.stdout.write(json.dumps([_document(result) for result in seen], indent=1))
        else:
            self._tell(seen, options["dry_run"])
            if busy := len(results) - len(seen):
                self.stdout.write(f"{busy} skipped: another scan is running.")
            if later:
                self.stdout.write(f"{later} not scanned: the time is up.")
        if any(result.sentence for result in seen):
            raise SystemExit(1)

    def _tell(self, results: list[ScanResult], dry_run: bool) -> None:
        for result in results:
            name = f"{result.connection.name} ({result.connection.project.slug})"
            for decision in result.decisions:
                if decision.registered is None or decision.action != "leave" or decision.found is not None:
                    word = queries.ACTION_WORDS[decision.action]
                    self.stdout.write(f"{name}: {decision.name}: {word}. {decision.reason}")
            if result.sentence:
                self.stdout.write(f"{name}: {result.sentence}")
            elif not any(each.found is not None or each.action != "leave" for each in result.decisions):
                self.stdout.write(f"{name}: no cloud resources are running.")
        if dry_run:
            self.stdout.write("Nothing was changed: this was a dry run.")
        elif not results:
            self.stdout.write("No connected account can hold cloud resources of Starling.")


def _document(result: ScanResult) -> dict[str, Any]:
    return {
        "connection": result.connection.pk,
        "name": result.connection.name,
        "project": result.connection.project.slug,
        "problem": result.sentence,
        "things": [
            {
                "name": decision.name,
                "deed": decision.action,
                "reason": decision.reason,
                "orphaned": decision.orphaned,
                "state": decision.registered.state if decision.registered else None,
                "found": decision.found is not None,
            }
            for decision in result.decisions
        ],
    }
