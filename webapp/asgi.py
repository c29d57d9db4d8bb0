"""The web process: pages by Django, live job pages by Channels, the actor gateway by itself.

Served by uvicorn; see webapp/web_server.py for the way it is started.
"""

import logging
import os

import django
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup(set_prefix=False)

# Only now are the models there that pages and consumers import.
from webapp.asgi_handler import PageHandler  # noqa: E402
from webapp.connections.gateway.mount import with_gateway  # noqa: E402
from webapp.http.origins import behind_proxies, own_pages_only  # noqa: E402
from webapp.http.responses import AddressRedaction  # noqa: E402
from webapp.jobs.events.consumers import websocket_urlpatterns  # noqa: E402
from webapp.sharing.consumers import websocket_urlpatterns as shared_urlpatterns  # noqa: E402
from webapp.upload_limit import upload_limit  # noqa: E402

for name in ("uvicorn.error", "uvicorn.access"):
    logging.getLogger(name).addFilter(AddressRedaction())

application = behind_proxies(
    ProtocolTypeRouter(
        {
            "http": with_gateway(PageHandler(upload_limit)),
            "websocket": own_pages_only(
                URLRouter(
                    [
                        *shared_urlpatterns,  # without a session
                        re_path("", AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
                    ]
                )
            ),
        }
    )
)
