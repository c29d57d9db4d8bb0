"""An Azure subscription on this machine: sign-in, resource manager and container groups whose containers really run.

Real enough for Azure's own SDK, over TLS with a certificate of its own, with faults on demand and a meter that nobody
else writes to. It says nothing about how long anything takes in Azure.
"""
