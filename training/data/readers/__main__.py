"""Reads one uploaded table in a process of its own, with a limit of memory, and prints one JSON object.

`python -m training.data.readers survey FILE` prints the survey, or {"format": key} for a file in a known format. `known
KEY FILE STORE` reads {"name", "file_name"} from standard input and prints the hash of the manifest of what such a file
holds; `prepare FILE STORE` reads {"survey", "choice", "name", "source"} and prints the manifest's hash. What is wrong
with the file is {"refused": sentence}, an error of the system {"errno": number, "error": text}. `ship KEY STORE` stores
a data set that comes with Starling, without the limit, and prints its manifest's hash alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from training.data.dataset import BadTable, write_dataset
from training.data.readers.choice import Choice
from training.data.readers.known import known_format, store_known
from training.data.readers.opening import open_table
from training.data.readers.preparing import prepare
from training.data.readers.survey import TableSurvey, survey
from training.data.readers.tables import TableRefused
from training.data.shipped import SHIPPED
from training.data.store import FolderStore
from training.engine.memory_limit import limit_memory

MEMORY_LIMIT_BYTES = 450 * 2**20


def answer(arguments: Sequence[str], given: str = "") -> dict[str, Any]:
    """Return what to print. `given` is the standard input."""
    try:
        match arguments:
            case ["survey", file]:
                if (key := known_format(Path(file))) is not None:
                    return {"format": key}
                return {"survey": survey(open_table(Path(file))).model_dump(mode="json")}
            case ["known", key, file, store]:
                request, unpacked = json.loads(given), Path(store) / "unpacked"
                unpacked.mkdir(parents=True, exist_ok=True)
                known = store_known(
                    Path(file),
                    key,
                    FolderStore(Path(store)),
                    name=request["name"],
                    file_name=request["file_name"],
                    folder=unpacked,
                )
                return {"manifest": known.hash}
            case ["prepare", file, store]:
                request = json.loads(given)
                Path(store).mkdir(parents=True, exist_ok=True)
                made = prepare(
                    open_table(Path(file)),
                    TableSurvey.model_validate(request["survey"]),
                    Choice.model_validate(request["choice"]),
                    FolderStore(Path(store)),
                    name=request["name"],
                    source=request["source"],
                    scratch_folder=Path(store),
                )
                return {"manifest": made.hash}
    except OSError as error:
        return {"errno": error.errno, "error": str(error)}
    except TableRefused as error:
        return {"refused": str(error)}
    except MemoryError:
        megabytes = MEMORY_LIMIT_BYTES // 2**20
        return {
            "refused": f"Reading it takes more than {megabytes} MB of memory. Upload fewer columns or rows."
        }
    raise SystemExit(__doc__)


def ship(key: str, store: Path) -> str:
    """Store a data set that comes with Starling and return its manifest's hash. Raises SystemExit if that fails."""
    try:
        return write_dataset(SHIPPED[key].make(), FolderStore(store)).hash
    except BadTable as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    if sys.argv[1:2] == ["ship"]:
        print(ship(sys.argv[2], Path(sys.argv[3])))
        raise SystemExit
    limit_memory(MEMORY_LIMIT_BYTES)
    json.dump(
        answer(sys.argv[1:], sys.stdin.read() if sys.argv[1] in ("known", "prepare") else ""), sys.stdout
    )
