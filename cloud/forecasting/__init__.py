"""What a job will take and cost, from a dry run of a few rounds: no environment is stepped and nothing is learned."""
