"""AWS: what the Lambda platform, the checks of an account and its reconciling are made of."""
