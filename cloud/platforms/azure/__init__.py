"""Azure: what the platform of container groups, the checks of a subscription and its reconciling are made of."""
