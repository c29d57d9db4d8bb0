"""What is told of a job: events, the live feed to its viewers, and sentences."""
