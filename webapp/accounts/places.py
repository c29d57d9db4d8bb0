"""The entries of the navigation rail. The command palette and the list of keys show them too."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """One row of the rail. `key`: the key that opens it after a g. Addresses of `of_project` places contain the
    project's slug. On narrow screens, places that are not `in_bar` are in the menu More."""

    section: str
    word: str
    icon: str
    key: str
    url_name: str
    of_project: bool = True
    at_foot: bool = False
    in_bar: bool = False


# A new page of the rail is one row here.
PLACES = (
    Place("overview", "Overview", "speedometer2", "o", "overview:page", in_bar=True),
    Place("jobs", "Jobs", "play-btn", "j", "jobs:list", in_bar=True),
    Place("data", "Data", "table", "d", "datasets:list"),
    Place("compare", "Compare", "intersect", "c", "comparing:page"),
    Place("budgets", "Budgets", "piggy-bank", "b", "budgets:list", in_bar=True),
    Place("reports", "Reports", "bar-chart", "r", "reports:page"),
    Place("clouds", "Clouds", "cloud", "l", "connections:list", in_bar=True),
    Place("schedulers", "Schedulers", "diagram-3", "s", "schedulers:list"),
    Place("papers", "Papers", "journal-text", "p", "papers:list", of_project=False),
    Place("members", "Members", "people", "m", "accounts:members"),
    Place("account", "Account", "gear", "a", "accounts:account", of_project=False, at_foot=True),
)
