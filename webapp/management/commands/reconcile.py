"""`manage.py reconcile`: look at every connected account now, and end what is left over there."""

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand

from webapp.clock import SYSTEM_CLOCK
from webapp.resources import queries, scanner
from webapp.resources.scanner import Sight


class Command(BaseCommand):
    help = (
        "Compare what stands in the connected accounts with what should, end what is left over, and say it. Exit code 1"
        " if an account could not be looked at."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
        parser.add_argument("--json", action="store_true", help="one JSON document instead of sentences")
        parser.add_argument("--connection", help="only this one, by its id")
        parser.add_argument(
            "--within", type=float, metavar="SECONDS", help="begin no further look after so long"
        )

    def handle(self, **options: Any) -> None:
        began = SYSTEM_CLOCK.now()
        within = None if options["within"] is None else timedelta(seconds=options["within"])
        sights: list[Sight | None] = []
        later = 0
        for there in scanner.watched():
            if options["connection"] not in (None, there.pk):
                continue
            if within is not None and SYSTEM_CLOCK.now() - began > within:
                later += 1
                continue
            sights.append(scanner.look_at(there, dry_run=options["dry_run"]))
        seen = [sight for sight in sights if sight is not None]
        if options["json"]:
            self.stdout.write(json.dumps([_document(sight) for sight in seen], indent=1))
        else:
            self._tell(seen, options["dry_run"])
            if busy := len(sights) - len(seen):
                self.stdout.write(f"{busy} looked at by somebody else at this moment.")
            if later:
                self.stdout.write(f"{later} left for later: the time is up.")
        if any(sight.sentence for sight in seen):
            raise SystemExit(1)

    def _tell(self, sights: list[Sight], dry_run: bool) -> None:
        for sight in sights:
            name = f"{sight.connection.name} ({sight.connection.project.slug})"
            for decision in sight.decisions:
                if decision.registered is None or decision.action != "leave" or decision.found is not None:
                    word = queries.DEEDS[decision.action]
                    self.stdout.write(f"{name}: {decision.name}: {word}. {decision.reason}")
            if sight.sentence:
                self.stdout.write(f"{name}: {sight.sentence}")
            elif not any(one.found is not None or one.action != "leave" for one in sight.decisions):
                self.stdout.write(f"{name}: nothing of ours stands there.")
        if dry_run:
            self.stdout.write("Nothing was changed: this was a dry run.")
        elif not sights:
            self.stdout.write("No account is connected in which anything of ours could stand.")


def _document(sight: Sight) -> dict[str, Any]:
    return {
        "connection": sight.connection.pk,
        "name": sight.connection.name,
        "project": sight.connection.project.slug,
        "problem": sight.sentence,
        "things": [
            {
                "name": one.name,
                "deed": one.action,
                "reason": one.reason,
                "orphaned": one.orphaned,
                "state": one.registered.state if one.registered else None,
                "found": one.found is not None,
            }
            for one in sight.decisions
        ],
    }
