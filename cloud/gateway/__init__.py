"""The actor gateway: where pullers fetch calls and bring answers. Any ASGI server can serve its door."""
