"""Lists what bills in a resource group: our container groups, of any run or set-up."""

from __future__ import annotations

from cloud.accounts.register import TAG_DEPLOYMENT, TAG_RUN, FoundResource, expiry_in, is_group_name, is_ours
from cloud.platforms.azure.clients import AzureClients
from cloud.platforms.azure.groups import AzureGroups, ListedGroup


class AzureFinder:
    """Implements `cloud.accounts.register.Finder`: one listing of all groups, and one request for each of ours."""

    def __init__(self, clients: AzureClients) -> None:
        self._groups = AzureGroups(clients)
        self._prefix = clients.connection.prefix

    def found(self) -> list[FoundResource]:
        """Return our groups, by their tags or by names that only we give. A group whose containers have all ended
        costs nothing and is left out; `clear_ended` deletes it.
        """
        ours = [group for group in self._groups.all().values() if self._is_ours(group)]
        return [_found(group) for group in ours if not _has_ended(self._groups, group.name)]

    def end(self, resource: FoundResource) -> None:
        self._groups.delete(resource.name)

    def _is_ours(self, group: ListedGroup) -> bool:
        return is_ours(group.tags) or is_group_name(self._prefix, group.name)


def clear_ended(groups: AzureGroups, deployment: str) -> int:
    """Delete ended groups, which cost nothing but count for the subscription's limits. Return how many."""
    ended = [name for name, over in groups_of(groups, deployment).items() if over]
    for name in ended:
        groups.delete(name)
    return len(ended)


def groups_of(groups: AzureGroups, deployment: str) -> dict[str, bool]:
    """Return the connection's groups by their tags, and whether each has ended."""
    return {
        group.name: _has_ended(groups, group.name)
        for group in groups.all().values()
        if is_ours(group.tags) and group.tags.get(TAG_DEPLOYMENT) == deployment
    }


def _has_ended(groups: AzureGroups, name: str) -> bool:
    status = groups.status(name)
    return status is None or status.ended


def _found(group: ListedGroup) -> FoundResource:
    return FoundResource(
        name=group.name,
        kind="container_group",
        provider_id=group.provider_id,
        deployment=group.tags.get(TAG_DEPLOYMENT, ""),
        run=group.tags.get(TAG_RUN, ""),
        expires_unix_s=expiry_in(group.tags),
        facts={"actors": group.containers},
    )
