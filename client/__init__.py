"""What `pip install` brings: `import starling` and the command `starling`.

    import starling

    run = starling.launch("cartpole", seeds=5, budget_usd=1)
    run.watch()
    frame = run.frame()

Begin reading with `runs.py`. `starling.py` is the client below it, which is also offered as one file; `main.py` is the
command, which is also packed as one file. All of it needs only Python, 3.9 or later, and imports nothing else of the
project.
"""

from .comparison import Comparison
from .runs import Run, launch, open_run
from .starling import Starling, StarlingError, __version__

__all__ = ["Comparison", "Run", "Starling", "StarlingError", "__version__", "launch", "open_run"]
