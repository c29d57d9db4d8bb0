"""A policy's network: its sizes, its layers in numpy and in torch, and its actions."""
