"""Provisioned concurrency for one job: created when it begins, deleted when it ends.

Provisioned instances cost money until they are deleted, even if this process dies. So they are registered before they
are created.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from cloud.accounts.register import Holder, NameTaken, RegisterClosed
from cloud.platforms.aws.error_text import ABSENT, code_of, is_denied, refusal

KEPT_FOR_S = 120.0
_RENEW_BEFORE_S = 80.0
_TRY_AGAIN_S = 2.0
_NONE_READY = "no instances are kept ready"
NOT_PROVISIONED = ABSENT | {"ProvisionedConcurrencyConfigNotFoundException"}


def ready_name(function: str, version: str) -> str:
    """Return the register's name of a version's instances. AWS gives them none; a version has one configuration."""
    return f"{function}:{version}"


class ProvisionedConcurrency:
    """`qualifier` is the version to invoke; None until its instances were requested, and if none are wanted.

    Call `renew` often: without a call for `KEPT_FOR_S` the instances are no longer wanted. `failure` says why they are
    missing; calls run on ordinary instances then.
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
        """Create them, once. It returns at once; calls go to ordinary instances until they are ready."""
        if self._instances and self._thread is None:
            self._thread = threading.Thread(
                target=self._create, args=(function,), name="provisioned", daemon=True
            )
            self._thread.start()

    def renew(self) -> None:
        """Record that they are still wanted. Raises RegisterClosed if another process owns the run now."""
        now_unix_s = self._now_unix_s()
        if self.qualifier is not None and self._expires_unix_s - now_unix_s < _RENEW_BEFORE_S:
            self._expires_unix_s = now_unix_s + KEPT_FOR_S
            self._holder.register.renew(self._name, self._expires_unix_s)

    def close(self) -> None:
        """Delete them. Instances that cannot be deleted stay in the register, where the reconciler finds them."""
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
                delete(self._client, self._where)
                # AWS may confirm a delete that it does not carry out.
                if not _exists(self._client, self._where):
                    register.gone(name)
            except Exception as error:
                self.failure = f"the instances kept ready could not be deleted: {_reason(error)}"

    def _create(self, function: str) -> None:
        try:
            published = self._client.publish_version(FunctionName=function)
            while not self._created(function, str(published["Version"]), str(published["FunctionArn"])):
                if self._closing.wait(_TRY_AGAIN_S):
                    return
            while self._is_starting():
                if self._closing.wait(_TRY_AGAIN_S):
                    return
        except Exception as error:
            self.failure = f"{_NONE_READY}: {_reason(error)}"

    def _is_starting(self) -> bool:
        """Return whether AWS still starts them. Note AWS's reason if it cannot."""
        if self.qualifier is None:
            return False
        try:
            config = self._client.get_provisioned_concurrency_config(**self._where)
        except Exception as error:
            if code_of(error) not in NOT_PROVISIONED:
                raise
            self.failure = f"{_NONE_READY}: AWS has ended them"
            return False
        if config["Status"] == "FAILED":
            self.failure = f"{_NONE_READY}: AWS says: {config.get('StatusReason') or 'no reason'}"
        return bool(config["Status"] == "IN_PROGRESS")

    def _created(self, function: str, version: str, version_arn: str) -> bool:
        """Return False while another run's instances of this version are being deleted."""
        register, name = self._holder.register, ready_name(function, version)
        with self._lock:
            if self._closing.is_set():
                return True
            expires_unix_s = self._now_unix_s() + KEPT_FOR_S
            facts = {"resource": "provisioned", "instances": self._instances}
            try:
                register.intend(name, "provisioned", expires_unix_s, facts)
            except NameTaken as taken:
                self.failure = f"{_NONE_READY}: {taken}"
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


def _reason(error: Exception) -> str:
    """Return AWS's own words, which repeat nothing but the function's name here; ours for a right that is missing, and
    where AWS did not answer."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict) and not is_denied(error):
        return f"AWS says: {response.get('Error', {}).get('Message') or code_of(error)}"
    why = refusal(error)
    return f"{why.words} {why.fix}".strip()


def delete(client: Any, where: Mapping[str, str]) -> None:
    """Request the deletion of a version's instances. It is no error if there are none."""
    try:
        client.delete_provisioned_concurrency_config(**where)
    except Exception as error:
        if code_of(error) not in NOT_PROVISIONED:
            raise


def _exists(client: Any, where: Mapping[str, str]) -> bool:
    try:
        client.get_provisioned_concurrency_config(**where)
    except Exception as error:
        if code_of(error) in NOT_PROVISIONED:
            return False
        raise
    return True
