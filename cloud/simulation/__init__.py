"""Virtual time of a cloud by work done: pure, without threads, the same for running, re-timing and forecasting."""
