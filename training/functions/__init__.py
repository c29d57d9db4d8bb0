"""The bodies that calls run. Bytes in, bytes out, and the work done; the same code on every platform."""
