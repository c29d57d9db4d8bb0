"""What the API sends and takes, a module a subject."""
