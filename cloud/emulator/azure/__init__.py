"""An Azure subscription on this machine: sign-in, resource manager and container groups whose containers really run.

Begin at `server.AzureEmulator`. Azure's own SDK talks to it over TLS. It has faults on demand, and its meter computes
bills without any ledger. It says nothing about how long anything takes in Azure.
"""
