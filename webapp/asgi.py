"""The web process: pages by Django, live job pages by Channels, the actor gateway by itself.

Served by uvicorn; see webapp/web_server.py for the way it is started.
"""

import os

import django
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
django.setup(set_prefix=False)

# Only now are the models there that pages and consumers import.
from webapp.asgi_handler import PageHandler  # noqa: E402
from webapp.gateway.mount import with_gateway  # noqa: E402
from webapp.jobs.events.consumers import websocket_urlpatterns  # noqa: E402
from webapp.origins import behind_proxies, own_pages_only  # noqa: E402
from webapp.upload_limit import upload_limit  # noqa: E402

application = behind_proxies(
    ProtocolTypeRouter(
        {
            "http": with_gateway(PageHandler(upload_limit)),
            "websocket": own_pages_only(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
        }
    )
)
