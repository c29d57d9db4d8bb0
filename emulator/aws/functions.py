"""Functions of the account: their versions, their code on disk, and when listings show them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import stat
import time
import uuid
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from emulator.aws.errors import AwsError

UNZIPPED_LIMIT_BYTES = 250 * 2**20
ZIPPED_LIMIT_BYTES = 50 * 2**20
LATEST = "$LATEST"


@dataclass(frozen=True)
class FunctionVersion:
    """Code and configuration. Publishing copies them under a number."""

    function: str
    number: str
    folder: Path | None
    code_sha256: str
    code_bytes: int
    handler: str
    runtime: str
    memory_mb: int
    timeout_s: int
    variables: tuple[tuple[str, str], ...]
    revision: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Environments with equal keys are interchangeable."""
        return self.function, self.number, self.revision


@dataclass
class Provisioned:
    """Provisioned instances of one version. `visible_s`: when listings begin to show them."""

    wanted: int
    ready: int = 0
    failed: str = ""
    visible_s: float = 0.0
    modified: str = field(default_factory=lambda: _now())


@dataclass
class Function:
    """`visible_s` and `gone_s` are on the loop's clock: a cloud shows changes with a delay."""

    name: str
    arn: str
    role: str
    latest: FunctionVersion
    tags: dict[str, str]
    visible_s: float
    active_s: float
    gone_s: float | None = None
    reserved: int | None = None
    versions: dict[str, FunctionVersion] = field(default_factory=dict)
    provisioned: dict[str, Provisioned] = field(default_factory=dict)
    in_flight: int = 0
    modified: str = field(default_factory=lambda: _now())

    def version(self, qualifier: str | None) -> FunctionVersion:
        if qualifier in (None, "", LATEST):
            return self.latest
        version = self.versions.get(str(qualifier))
        if version is None:
            raise not_found(f"{self.arn}:{qualifier}")
        return version

    @property
    def alive(self) -> bool:
        return self.gone_s is None

    def described(self, version: FunctionVersion, now_s: float) -> dict[str, Any]:
        """Return a version's configuration as the API shows it."""
        published = version.number != LATEST
        return {
            "FunctionName": self.name,
            "FunctionArn": f"{self.arn}:{version.number}" if published else self.arn,
            "Runtime": version.runtime,
            "Role": self.role,
            "Handler": version.handler,
            "CodeSize": version.code_bytes,
            "Timeout": version.timeout_s,
            "MemorySize": version.memory_mb,
            "LastModified": self.modified,
            "CodeSha256": version.code_sha256,
            "Version": version.number,
            "PackageType": "Zip",
            "Architectures": ["x86_64"],
            "EphemeralStorage": {"Size": 512},
            "State": "Active" if now_s >= self.active_s else "Pending",
            "LastUpdateStatus": "Successful",
            "RevisionId": version.revision,
            "Environment": {"Variables": dict(version.variables)},
        }


class EmulatedFunctions:
    """A region's functions by name. A deleted one remains until no listing shows it."""

    def __init__(self, account_id: str, region: str, folder: Path) -> None:
        self._account_id = account_id
        self.region = region
        self._folder = folder
        self._by_name: dict[str, Function] = {}

    def arn(self, name: str) -> str:
        return f"arn:aws:lambda:{self.region}:{self._account_id}:function:{name}"

    def name_of(self, given: str) -> str:
        """Return the name in a name or an ARN."""
        return given.split(":function:")[-1].split(":")[0] if given.startswith("arn:") else given

    def get(self, given: str) -> Function:
        """Return a function that is visible now. Raises ResourceNotFoundException."""
        function = self._by_name.get(self.name_of(given))
        if function is None or not _visible(function):
            raise not_found(self.arn(self.name_of(given)))
        return function

    def seen(self) -> list[Function]:
        """Return what a listing shows now."""
        return [self._by_name[name] for name in sorted(self._by_name) if _visible(self._by_name[name])]

    def alive(self) -> list[Function]:
        """Return what really exists, whatever a listing shows."""
        return [function for function in self._by_name.values() if function.alive]

    def create(self, given: dict[str, Any], *, delay_s: float, slow_s: float) -> Function:
        name = str(given["FunctionName"])
        existing = self._by_name.get(name)
        if existing is not None and existing.alive:
            raise AwsError(409, "ResourceConflictException", f"Function already exist: {name}", Type="User")
        now_s = time.monotonic()
        blank = FunctionVersion(name, LATEST, None, "", 0, "", "", 128, 3, ())
        version = self.coded(self.configured(blank, given), given.get("Code", {}))
        tags = {str(key): str(value) for key, value in (given.get("Tags") or {}).items()}
        function = Function(
            name, self.arn(name), str(given["Role"]), version, tags, now_s + delay_s, now_s + slow_s
        )
        self._by_name[name] = function
        return function

    def configured(self, version: FunctionVersion, given: dict[str, Any]) -> FunctionVersion:
        """Return the version with the given configuration, and all else unchanged."""
        memory_mb = int(given.get("MemorySize", version.memory_mb))
        timeout_s = int(given.get("Timeout", version.timeout_s))
        if not 128 <= memory_mb <= 10_240:
            raise invalid(f"MemorySize {memory_mb} is not between 128 and 10240")
        if not 1 <= timeout_s <= 900:
            raise invalid(f"Timeout {timeout_s} is not between 1 and 900")
        variables = version.variables
        if "Environment" in given:
            variables = tuple(sorted((given["Environment"].get("Variables") or {}).items()))
            if sum(len(name) + len(value) for name, value in variables) > 4096:
                raise invalid("Environment variables exceed the 4KB limit")
        return replace(
            version,
            handler=str(given.get("Handler", version.handler)),
            runtime=str(given.get("Runtime", version.runtime)),
            memory_mb=memory_mb,
            timeout_s=timeout_s,
            variables=variables,
            revision=str(uuid.uuid4()),
        )

    def coded(self, version: FunctionVersion, code: dict[str, Any]) -> FunctionVersion:
        """Return the version with the code of the given zip, unpacked."""
        packed = code.get("ZipFile")
        if packed is None:
            raise invalid("Only code that comes as ZipFile is known here")
        data = base64.b64decode(packed)
        if len(data) > ZIPPED_LIMIT_BYTES:
            raise AwsError(
                413, "RequestEntityTooLargeException", f"Request must be smaller than {ZIPPED_LIMIT_BYTES}"
            )
        digest = hashlib.sha256(data).digest()
        folder = self._folder / digest.hex()[:24]
        if not folder.exists():
            _unzip(data, folder)
        return replace(
            version,
            folder=folder,
            code_sha256=base64.b64encode(digest).decode(),
            code_bytes=len(data),
            revision=str(uuid.uuid4()),
        )

    def publish(self, function: Function) -> FunctionVersion:
        """Return the latest version under the next number, or under its own if nothing has changed."""
        for version in function.versions.values():
            if version.revision == function.latest.revision:
                return version
        number = str(len(function.versions) + 1)
        function.versions[number] = replace(function.latest, number=number)
        return function.versions[number]


def _visible(function: Function) -> bool:
    now_s = time.monotonic()
    return function.visible_s <= now_s and (function.gone_s is None or now_s < function.gone_s)


def _unzip(data: bytes, folder: Path) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > UNZIPPED_LIMIT_BYTES:
                raise invalid(f"Unzipped size must be smaller than {UNZIPPED_LIMIT_BYTES} bytes")
            for entry in entries:
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise invalid("Could not unzip uploaded file: it holds what is neither file nor folder")
            archive.extractall(folder)
    except zipfile.BadZipFile:
        raise invalid(
            "Could not unzip uploaded file. Please check your file, then try to upload again."
        ) from None


def invalid(message: str) -> AwsError:
    return AwsError(400, "InvalidParameterValueException", message, Type="User")


def not_found(arn: str) -> AwsError:
    return AwsError(404, "ResourceNotFoundException", f"Function not found: {arn}", Type="User")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000+0000", time.gmtime())


def as_json(document: Any) -> bytes:
    return json.dumps(document).encode()
