"""Connections to clouds: how a project reaches a cloud account, with sealed secrets, set up in steps and tested by the
worker. `gateway/` is for machines that fetch their calls.
"""
