"""What `manage.py bench reports` runs in a process of its own, on a data folder of its own."""
