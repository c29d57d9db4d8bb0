"""One browser on the page of a long job: `python -m benchmarks.watching.page ROUNDS UPDATES_A_SECOND SECONDS`."""

# ruff: noqa: E402 - Django is set up before models are imported

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

import django

django.setup()

from django.conf import settings
from playwright.sync_api import CDPSession, Page, sync_playwright

from benchmarks.watching.rounds import long_history
from benchmarks.watching.site import Watched, running_jobs, served, session_of
from rig.chromium import QUIET, chromium_path
from rig.rounds import round_finished

_WATCH = """
new PerformanceObserver((list) => {
  for (const mark of list.getEntries()) {
    if (mark.name === "charts-drawn" && !performance.getEntriesByName("painted").length) {
      requestAnimationFrame(() => setTimeout(() => performance.mark("painted")));
    }
  }
}).observe({ type: "mark", buffered: true });
window.frames_ms = [];
let last = 0;
requestAnimationFrame(function frame(now) {
  if (last) window.frames_ms.push(now - last);
  last = now;
  requestAnimationFrame(frame);
});
"""
_FIRST = "performance.getEntriesByName('{}')[0]?.startTime"
_ZOOM = """
async (address) => {
  const began = performance.now();
  const answer = await fetch(address);
  const series = await answer.json();
  return [performance.now() - began, series.per_point];
}
"""


def _weighed(cdp: CDPSession, url: str) -> dict[str, float]:
    """Counts what comes over the wire from now on."""
    weights = {"weight_kb": 0.0, "static_kb": 0.0, "other_hosts": 0.0}
    kinds: dict[str, str] = {}

    def begun(event: dict[str, Any]) -> None:
        kinds[event["requestId"]] = event.get("type", "")
        requested = event["request"]["url"]
        weights["other_hosts"] += not requested.startswith((url, url.replace("http", "ws"), "data:", "blob:"))

    def ended(event: dict[str, Any]) -> None:
        if kinds.get(event["requestId"]) != "Font":
            weights["weight_kb"] += event["encodedDataLength"] / 1000
            weights["static_kb"] += event["encodedDataLength"] / 1000

    def framed(event: dict[str, Any]) -> None:
        weights["weight_kb"] += len(event["response"]["payloadData"]) / 1000

    cdp.on("Network.requestWillBeSent", begun)
    cdp.on("Network.loadingFinished", ended)
    cdp.on("Network.webSocketFrameReceived", framed)
    cdp.send("Network.enable")
    return weights


def _streamed(page: Page, watched: Watched, rounds: int, rate: int, seconds: int) -> list[float]:
    """How long each frame took while new rounds came."""
    page.evaluate("window.frames_ms.length = 0")
    began_s = time.monotonic()
    for turn in range(rate * seconds):
        watched.recorder.record(round_finished(rounds + turn + 1, spent=(rounds + turn) * 10**6))
        page.wait_for_timeout(max(1, 1000 * (began_s + (turn + 1) / rate - time.monotonic())))
    return sorted(page.evaluate("window.frames_ms"))


def main(rounds: int, rate: int, seconds: int) -> dict[str, float]:
    with served() as (url, _), sync_playwright() as playwright:
        project, (watched,) = running_jobs(1)
        long_history(watched.job, rounds)
        browser = playwright.chromium.launch(
            executable_path=chromium_path(), args=[*QUIET, "--enable-precise-memory-info"]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        cookie = session_of(project.people.first())
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": url}])
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.add_init_script(_WATCH)
        address = f"{url}/p/{project.slug}/jobs/{watched.job.pk}/"
        began_s = time.monotonic()
        context.request.get(f"{address}series")
        first_look_s = time.monotonic() - began_s
        cdp = context.new_cdp_session(page)
        weights = _weighed(cdp, url)
        page.goto(address)
        while not page.evaluate("performance.getEntriesByName('painted').length"):
            page.wait_for_timeout(50)
        weighed = dict(weights)
        data_ms, drawn_ms, painted_ms = (
            page.evaluate(_FIRST.format(name)) for name in ("data", "charts-drawn", "painted")
        )
        frames_ms = _streamed(page, watched, rounds, rate, seconds)
        zoom_ms, _ = page.evaluate(_ZOOM, f"{address}series?from={rounds // 2}&to={rounds // 2 + 500}")
        cdp.send("HeapProfiler.collectGarbage")
        heap = cdp.send("Runtime.getHeapUsage")["usedSize"]
        browser.close()
    return {
        **weighed,
        "drawn_ms": drawn_ms - data_ms,
        "painted_ms": painted_ms - data_ms,
        "fps": 1000 * len(frames_ms) / sum(frames_ms),
        "frame_p95_ms": frames_ms[int(0.95 * len(frames_ms))],
        "heap_mb": heap / 1e6,
        "first_look_s": first_look_s,
        "zoom_ms": zoom_ms,
    }


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))))
