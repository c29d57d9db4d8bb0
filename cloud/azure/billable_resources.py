"""What bills in a resource group by standing there: container groups of ours, whoever of us made them."""

from __future__ import annotations

from cloud.azure.clients import AzureClients
from cloud.azure.groups import AzureGroups, Seen
from cloud.register import TAG_DEPLOYMENT, TAG_RUN, Found, expiry_in, is_group_name, is_ours


class AzureFinder:
    """Implements `cloud.register.Finder`: one list for all groups, and a closer look only at those of ours."""

    def __init__(self, clients: AzureClients) -> None:
        self._groups = AzureGroups(clients)
        self._prefix = clients.connection.prefix

    def found(self) -> list[Found]:
        """By their tags, or by names that only we give. Each is looked at: one whose containers have all ended by
        themselves costs nothing any more, and `clear_ended` takes it away.
        """
        ours = [seen for seen in self._groups.all().values() if self._is_ours(seen)]
        return [_found(seen) for seen in ours if not _has_ended(self._groups, seen.name)]

    def end(self, found: Found) -> None:
        self._groups.delete(found.name)

    def _is_ours(self, seen: Seen) -> bool:
        return is_ours(seen.tags) or is_group_name(self._prefix, seen.name)


def clear_ended(groups: AzureGroups, deployment: str) -> int:
    """Take away what has ended by itself: it costs nothing, but counts for the subscription's limits. How many."""
    ended = [
        seen.name
        for seen in groups.all().values()
        if is_ours(seen.tags)
        and seen.tags.get(TAG_DEPLOYMENT) == deployment
        and _has_ended(groups, seen.name)
    ]
    for name in ended:
        groups.delete(name)
    return len(ended)


def _has_ended(groups: AzureGroups, name: str) -> bool:
    looked = groups.look(name)
    return looked is None or looked.ended


def _found(seen: Seen) -> Found:
    return Found(
        name=seen.name,
        kind="container_group",
        provider_id=seen.provider_id,
        deployment=seen.tags.get(TAG_DEPLOYMENT, ""),
        run=seen.tags.get(TAG_RUN, ""),
        expires_unix_s=expiry_in(seen.tags),
        facts={"actors": seen.containers},
    )
