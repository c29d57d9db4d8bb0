"""The commands of `manage.py` that start, check or mend an installation or train without one, a file each."""
