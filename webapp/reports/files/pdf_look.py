"""Measures in millimetres and colours of reports as PDF: the dashboard's light theme."""

MARGIN = 18.0
WIDTH = 210.0 - 2 * MARGIN
BOTTOM = 297.0 - 20.0

INK = (22, 25, 31)
GREY = (91, 100, 114)
LINE = (227, 230, 235)
FAINT = (247, 248, 250)
ACCENT = (0, 114, 178)
WARNING = (138, 92, 0)
