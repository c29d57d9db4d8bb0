"""An Azure subscription on this machine: sign-in, resource manager and container groups whose containers really run.

Begin at `server.AzureEmulator`. Azure's own SDK talks to it over TLS. It has faults on demand, and its meter keeps what
it bills. It says nothing about how long anything takes in Azure.
"""
