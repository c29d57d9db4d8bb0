"""What tests, benchmarks and measured research share: figures, server processes, a browser, a made-up round."""
