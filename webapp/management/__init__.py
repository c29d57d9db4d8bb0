"""What the commands of `manage.py` share."""
