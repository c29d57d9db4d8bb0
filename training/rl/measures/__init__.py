"""What a scaling policy may have measured beside an update."""
