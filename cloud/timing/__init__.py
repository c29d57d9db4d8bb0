"""Times: a cloud's numbers, virtual time, what a job will take, what a machine or an account was measured to take."""
