"""A cloud in virtual time: pure, without threads, the same for simulated jobs, re-timing and forecasting."""
