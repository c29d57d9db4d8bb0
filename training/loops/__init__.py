"""The loops: whether actors and learner wait for each other. One loop a file."""
