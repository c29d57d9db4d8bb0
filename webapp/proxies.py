"""The client's scheme and address, from the headers of proxies that the operator named.

From anyone else these headers say nothing. Whether cookies are secure, HSTS is sent and whose attempts are counted all
follow from the request's scheme and address.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


def behind_proxies(application: Any) -> Any:
    """Wrap the application, so that it is called with the scheme and address of the client behind the proxies."""
    return ProxyHeadersMiddleware(application, settings.STARLING_TRUSTED_PROXIES)
