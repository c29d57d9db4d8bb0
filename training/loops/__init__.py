"""Who waits for whom: one small loop a file."""
