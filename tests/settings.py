"""The settings under test: the real ones, on a folder of their own, with cheap passwords.

Server processes that a test starts run on these settings too; they find this process's folder, database and Redis in
the environment (see `service_environment` in conftest.py).
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

if "STARLING_TEST_FOLDER" in os.environ:  # we are a server process of some test
    _folder = Path(os.environ["STARLING_TEST_FOLDER"])
else:
    _folder = Path(tempfile.mkdtemp(prefix="starling-test-"))
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    # No one answers there until a test asks for the `valkey` fixture, which starts one on this port.
    from rig.servers import reserved_port

    os.environ["REDIS_URL"] = f"redis://127.0.0.1:{reserved_port()}/0"
os.environ["STARLING_DATA"] = str(_folder)

from webapp.settings import *  # noqa: F403
from webapp.settings import DATABASES, STARLING_SMTP_URL

STARLING_TEST_FOLDER = _folder

# A file, not memory: other processes must see what a test writes, under the same WAL and IMMEDIATE as in production.
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["TEST"] = {"NAME": str(_folder / "test.sqlite3")}

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if not STARLING_SMTP_URL:  # a worker that a test starts may have a real mail server, on this machine
    EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
# Straight from their sources: collecting and compressing would only make tests slower.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
