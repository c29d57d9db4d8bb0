"""What files that people take away are written with, for every kind of training."""
