"""What runs inside a Ray cluster."""
