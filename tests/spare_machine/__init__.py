"""A platform by example: what one more platform is in files and rows, run in a copy of the code."""
