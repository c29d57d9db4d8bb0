"""Who may see and do what: people, projects, and the role a person has in a project."""
