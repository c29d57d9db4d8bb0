"""Jobs: asked for in a form, run in a process of their own, told as events that pages follow live."""
