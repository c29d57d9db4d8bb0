"""What it costs to know the curvature of an objective: the measurement that the papers' figure 20 repeats."""

from research.curvature_cost import measure

__all__ = ["measure"]
