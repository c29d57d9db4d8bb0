"""Requests and responses of the API, one module a subject."""
