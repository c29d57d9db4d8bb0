"""The same as the pages, for programs: REST, its description, tokens, event streams, TensorBoard, Prometheus.

Begin with `router.py`; `routes/` has a file for each kind of thing.
"""
