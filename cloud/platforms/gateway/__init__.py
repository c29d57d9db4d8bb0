"""The actor gateway: pullers fetch calls here and post answers. Any ASGI server can serve `asgi.GatewayApp`."""
