"""The web process: pages by Django, live job pages by Channels, the actor gateway by itself.

Served by uvicorn; see webapp/supervisor.py for the way it is started.
"""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
_pages = get_asgi_application()

# Only now are the models there that the consumers import.
from webapp.gateway.entrance import entrance  # noqa: E402
from webapp.jobs.routing import websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": entrance(_pages),
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)
