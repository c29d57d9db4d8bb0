"""What `manage.py bench live` and `manage.py bench job-page` run in processes and data folders of their own."""
