"""An installation as it was before release 0.1, with rows in every table (see README.md), and what reads it."""
