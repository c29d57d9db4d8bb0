"""What if a running job had other actors or another limit: predicted, applied, kept, and judged at the job's end.

Begin with `predict` (the arithmetic over a job's rounds) and `services` (what people do).
"""
