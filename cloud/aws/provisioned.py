"""Instances of a function that are kept ready for one job: bought when it begins, given back when it ends.

They cost money until somebody deletes them, whatever becomes of this process; so the register knows of them first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from cloud.aws.error_text import ABSENT, code_of
from cloud.register import Holder, NameTaken, RegisterClosed

KEPT_FOR_S = 120.0
_RENEW_BEFORE_S = 80.0
_TRY_AGAIN_S = 2.0
NOT_READY = ABSENT | {"ProvisionedConcurrencyConfigNotFoundException"}


def ready_name(function: str, version: str) -> str:
    """What the instances of a version are called: they have no name of their own, and there is one lot a version."""
    return f"{function}:{version}"


class KeptReady:
    """`qualifier` is the version to call from then on; None until there is one. Without any wanted it does nothing.

    `keep` is to be called now and then: whoever does not for `KEPT_FOR_S` does not want them any more.
    """

    def __init__(
        self,
        client: Any,
        instances: int,
        holder: Holder,
        *,
        now_unix_s: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._instances = instances
        self._holder = holder
        self._now_unix_s = now_unix_s
        self._thread: threading.Thread | None = None
        self._name = ""
        self._where: dict[str, str] = {}
        self._expires_unix_s = 0.0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.qualifier: str | None = None
        self.failure = ""

    def begin(self, function: str) -> None:
        """Have them, once; returns at once, calls go to ordinary instances until they are there."""
        if self._instances and self._thread is None:
            self._thread = threading.Thread(
                target=self._buy, args=(function,), name="kept-ready", daemon=True
            )
            self._thread.start()

    def keep(self) -> None:
        """They are wanted still. RegisterClosed if they are somebody else's to want by now."""
        now_unix_s = self._now_unix_s()
        if self.qualifier is not None and self._expires_unix_s - now_unix_s < _RENEW_BEFORE_S:
            self._expires_unix_s = now_unix_s + KEPT_FOR_S
            self._holder.register.renew(self._name, self._expires_unix_s)

    def close(self) -> None:
        """Give them back. What cannot be given back stays in the register, where others find it."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            name, self._name = self._name, ""
            if not name:
                return
            register = self._holder.register
            register.ending(name)
            try:
                take_away(self._client, self._where)
                # A delete may be said and not done: only a look tells.
                if not _stands(self._client, self._where):
                    register.gone(name)
            except Exception as error:
                self.failure = f"the instances kept ready could not be given back: {error}"

    def _buy(self, function: str) -> None:
        try:
            published = self._client.publish_version(FunctionName=function)
            while not self._bought(function, str(published["Version"]), str(published["FunctionArn"])):
                if self._closing.wait(_TRY_AGAIN_S):
                    return
        except Exception as error:
            self.failure = f"no instances are kept ready: {error}"

    def _bought(self, function: str, version: str, version_arn: str) -> bool:
        """Whether that is settled; not while what another run left of this version is being taken away."""
        register, name = self._holder.register, ready_name(function, version)
        with self._lock:
            if self._closing.is_set():
                return True
            expires_unix_s = self._now_unix_s() + KEPT_FOR_S
            facts = {"resource": "provisioned", "instances": self._instances}
            try:
                register.intend(name, "provisioned", expires_unix_s, facts)
            except NameTaken as taken:
                self.failure = f"no instances are kept ready: {taken}"
                return False
            except RegisterClosed:
                return True
            self._name, self._expires_unix_s = name, expires_unix_s
            self._where = {"FunctionName": function, "Qualifier": version}
            self._client.tag_resource(
                Resource=version_arn.removesuffix(f":{version}"), Tags=self._holder.tags(expires_unix_s)
            )
            self._client.put_provisioned_concurrency_config(
                **self._where, ProvisionedConcurrentExecutions=self._instances
            )
            register.made(name, version_arn)
        self.qualifier, self.failure = version, ""
        return True


def take_away(client: Any, where: Mapping[str, str]) -> None:
    """Ask for the instances of a version to be kept ready no longer. None there is no error."""
    try:
        client.delete_provisioned_concurrency_config(**where)
    except Exception as error:
        if code_of(error) not in NOT_READY:
            raise


def _stands(client: Any, where: Mapping[str, str]) -> bool:
    try:
        client.get_provisioned_concurrency_config(**where)
    except Exception as error:
        if code_of(error) in NOT_READY:
            return False
        raise
    return True
