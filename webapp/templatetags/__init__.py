"""Tags and filters of all templates: figures, charts, panels and the frame of every page."""
