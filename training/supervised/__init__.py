"""Supervised training: its models in numpy, what descent keeps and what functions push."""
