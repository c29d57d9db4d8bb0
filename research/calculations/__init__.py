"""Figures that need no training, one file each."""
