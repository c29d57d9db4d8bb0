"""What a few seeds allow to say, a test of pairs that may end early, and how far a curve may still get."""
