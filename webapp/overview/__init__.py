"""A project at one look: what runs, what it costs, what needs somebody, what came out; and the way to everything."""
