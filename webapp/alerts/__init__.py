"""What people are told without asking: alerts, who looks after them, and the channels they go out by."""
