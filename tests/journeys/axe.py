"""What axe-core finds on a page: what keeps people out who use a keyboard, a screen reader, or see few colours."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

_SCRIPT = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """
async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.map((node) => node.html) }));
}
"""


def violations(page: "Page") -> list[str]:
    """Each rule that is broken, with the first places where it is."""
    # As a debugger puts it in: the page's own policy allows no foreign script.
    page.evaluate(_SCRIPT.read_text(encoding="utf-8") + "; undefined")
    found: list[dict[str, Any]] = page.evaluate(_RUN)
    return [
        f"{one['id']}: {one['help']} ({len(one['nodes'])}): {' | '.join(one['nodes'][:3])}" for one in found
    ]
