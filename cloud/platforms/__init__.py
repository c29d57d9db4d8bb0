"""Platforms: where calls run. One platform a file, with its options; the parts of the larger ones in folders."""
