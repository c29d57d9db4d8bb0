"""Money: prices, usage and rent as lines of a bill, and the ledger without which no call starts."""
