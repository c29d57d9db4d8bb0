"""Connections to clouds: how a project reaches a cloud account, with sealed secrets."""
