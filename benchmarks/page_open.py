"""How fast the page of a large trace opens, and how smoothly it scrolls: six layers, d = 384, 64 tokens.

Prints the opening time as a ratio to that of an empty page of the same size, opened in turns with it, and the longest
task of the main thread while every part is scrolled through: what it computed, against the limit of 50 ms, and how long
it took with other programs on the machine.

    python benchmarks/page_open.py [--rounds 5] [--layers 6] [--d 384] [--tokens 64]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Browser, sync_playwright

import glassformer
from glassformer import page
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, FeedForwardConfig, NormConfig, PositionConfig
from glassformer.tracing import Trace, header_of, tensors_of

RATIO_LIMIT = 3.0
TASK_LIMIT_MS = 50.0
VOCABULARY = 512
STEP_PX = 400

PAINTED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
EMPTY = '<!doctype html><meta charset="utf-8"><title>empty</title><p>empty</p><script type="text/plain">{}</script>'


def traced(layers: int, d: int, n: int) -> Trace:
    """A trace of a decoder with random weights and the options of a trained one, on ``n`` tokens."""
    torch.manual_seed(0)
    config = DecoderConfig.alike(
        layers,
        vocab_size=VOCABULARY,
        context=n,
        d=d,
        attention=AttentionConfig(heads=d // 64, d_k=64, d_v=64),
        norm=NormConfig(kind="rmsnorm"),
        position=PositionConfig(kind="rope"),
        ffn=FeedForwardConfig(d_ff=8 * d // 3, activation="silu", gated=True, bias=False),
    )
    return glassformer.trace(Decoder(config), [7 * k % VOCABULARY for k in range(n)], witness_cells=0)


def html_of(trace: Trace) -> str:
    """Its page. The trace itself is large and not needed beside the browser."""
    return page.build(header_of(trace), tensors_of(trace))


def opening_ms(browser: Browser, file: Path, ready: str, at: str = "") -> float:
    """From the start of the navigation to the place ``at`` until what ``ready`` selects is painted, in milliseconds."""
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    opened.goto(file.as_uri() + at, wait_until="load", timeout=120_000)
    opened.wait_for_selector(ready, timeout=120_000)
    taken = float(opened.evaluate(PAINTED))
    context.close()
    return taken


def longest_tasks_ms(browser: Browser, file: Path, trace_file: Path) -> tuple[float, float]:
    """The most that one task of the main thread computed, and the longest that one took, from top to bottom."""
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    opened.goto(file.as_uri(), timeout=120_000)
    opened.keyboard.press("o")  # opens every part
    opened.wait_for_timeout(4000)
    opened.mouse.move(700, 500)
    browser.start_tracing(
        page=opened, path=trace_file, categories=["toplevel", "devtools.timeline", "blink.user_timing"]
    )
    at, before = 0, -1
    while at != before:
        opened.mouse.wheel(0, STEP_PX)
        opened.wait_for_timeout(80)
        before, at = at, int(opened.evaluate("() => Math.round(scrollY)"))
    browser.stop_tracing()
    context.close()
    events: list[dict[str, Any]] = json.loads(trace_file.read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    tasks = [
        e
        for e in events
        if e["name"].endswith("RunTask") and e.get("ph") == "X" and names.get((e["pid"], e["tid"])) == "CrRendererMain"
    ]
    return max(e.get("tdur", 0) for e in tasks) / 1000, max(e["dur"] for e in tasks) / 1000


def main() -> None:
    """Measure in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--d", type=int, default=384)
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    text = html_of(traced(options.layers, options.d, options.tokens))
    whole: list[float] = []
    empty: list[float] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        files = {name: Path(folder) / f"{name}.html" for name in ("whole", "empty")}
        files["whole"].write_text(text, encoding="utf-8")
        files["empty"].write_text(EMPTY.format("A" * (len(text) - len(EMPTY) + 2)), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"))
        for _ in range(options.rounds):
            empty.append(opening_ms(browser, files["empty"], "p"))
            whole.append(opening_ms(browser, files["whole"], ".map-row"))
        computing, taking = longest_tasks_ms(browser, files["whole"], Path(folder) / "scroll.json")
        browser.close()
    opened, nothing = statistics.median(whole), statistics.median(empty)
    print(f"load average              {os.getloadavg()[0]:.1f}")
    print(f"page of {len(text) / 1e6:.0f} MB            {opened:.0f} ms   an empty one of that size {nothing:.0f} ms")
    print(f"ratio                     {opened / nothing:.2f}   limit {RATIO_LIMIT:g}")
    print(
        f"longest task, scrolling   {computing:.0f} ms of computing   limit {TASK_LIMIT_MS:g}   ({taking:.0f} ms by the clock)"
    )


if __name__ == "__main__":
    main()
