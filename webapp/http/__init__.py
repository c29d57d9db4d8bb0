"""Requests that come in and go out: bodies, answers, origins, versions of forms, static files, foreign addresses."""
