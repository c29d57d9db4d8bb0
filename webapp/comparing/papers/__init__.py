"""Pages of the papers' figures and of our experiments, drawn from the results stored in research/results.

Begin with `pages`. The experiments themselves are in `research/`, which the product does not import.
"""
