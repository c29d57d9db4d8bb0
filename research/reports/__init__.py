"""From stored runs to a report. Begin with `report`, which puts all parts together; `outcomes` reads the runs."""
