"""A policy taken away: as an ONNX graph, with its card, its script and its film."""
