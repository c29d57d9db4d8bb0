"""The bodies of calls: bytes in, bytes and a count of the work out. The same code runs on every platform."""
