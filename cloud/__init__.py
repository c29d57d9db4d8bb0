"""The machines: platforms that run calls, what they cost, and the processes behind them. No Django."""
