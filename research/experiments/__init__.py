"""One experiment a file with the name `EXPERIMENT`; it is found by being there, under the name of its file."""
