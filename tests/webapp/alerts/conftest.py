from collections.abc import Iterator
from typing import Any

import pytest

from rig.servers import reserved_port
from tests.receivers import MailCatcher, mail_catcher


@pytest.fixture
def catcher(settings: Any) -> Iterator[MailCatcher]:
    port = reserved_port()
    settings.STARLING_SMTP_URL = f"smtp+plain://127.0.0.1:{port}"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
    with mail_catcher(port) as one:
        yield one
