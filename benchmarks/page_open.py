"""How fast the page of a large trace opens, and how smoothly it scrolls: six layers, d = 384, 64 tokens.

Prints the opening time as a ratio to that of an empty page of the same size, opened in turns with it, and the longest
task of the main thread while everything is scrolled through, against the limits of 3 and of 50 ms. On a busy machine
a task waits for the processor too: its own computing is printed beside it.

    python benchmarks/page_open.py [--rounds 5] [--layers 6] [--d 384] [--tokens 64]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Browser, Page, sync_playwright

import glassformer
from glassformer import page
from glassformer.model import AttentionConfig, Decoder, DecoderConfig, FeedForwardConfig, NormConfig, PositionConfig
from glassformer.tracing import Trace, header_of, tensors_of

RATIO_LIMIT = 3.0
TASK_LIMIT_MS = 50.0
VOCABULARY = 512

PAINTED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
EMPTY = (
    '<!doctype html><meta charset="utf-8"><title>empty</title><p>empty</p>'
    '<script type="application/octet-stream">{}</script>'
)
STEP = 400


def traced(layers: int, d: int, n: int) -> Trace:
    """A trace of a decoder with random weights, the options of a trained one and ``n`` tokens."""
    torch.manual_seed(0)
    config = DecoderConfig.alike(
        layers,
        vocab_size=VOCABULARY,
        context=n,
        d=d,
        attention=AttentionConfig(heads=d // 64, d_k=64, d_v=64),
        norm=NormConfig(kind="rmsnorm"),
        position=PositionConfig(kind="rope"),
        ffn=FeedForwardConfig(d_ff=8 * d // 3 // 64 * 64, activation="silu", gated=True, bias=False),
    )
    return glassformer.trace(Decoder(config), [7 * k % VOCABULARY for k in range(n)], witness_cells=0)


def opening_ms(browser: Browser, file: Path, ready: str) -> float:
    """From the start of the navigation until what ``ready`` selects is painted, in milliseconds."""
    context = browser.new_context(offline=True, viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    opened.goto(file.as_uri(), wait_until="commit", timeout=120_000)
    opened.wait_for_selector(ready, timeout=120_000)
    taken = float(opened.evaluate(PAINTED))
    context.close()
    return taken


def tasks_while_scrolling(opened: Page) -> tuple[float, float]:
    """Milliseconds of the longest task of the main thread from top to bottom of the open parts: elapsed, and computing."""
    client = opened.context.new_cdp_session(opened)
    events: list[dict[str, Any]] = []
    client.on("Tracing.dataCollected", lambda data: events.extend(data["value"]))
    client.send("Tracing.start", {"traceConfig": {"includedCategories": ["toplevel", "devtools.timeline"]}})
    opened.mouse.move(700, 500)
    bottom = -1
    while (at := int(opened.evaluate("() => Math.round(scrollY)"))) != bottom:
        bottom = at
        opened.mouse.wheel(0, STEP)
        opened.wait_for_timeout(60)
    with opened.expect_event("close", timeout=1) if False else _Finished(client):
        client.send("Tracing.end")
    main = _main_thread(events)
    tasks = [e for e in events if e.get("ph") == "X" and e["name"].endswith("RunTask") and (e["pid"], e["tid"]) == main]
    return max(e["dur"] for e in tasks) / 1000, max(e.get("tdur", 0) for e in tasks) / 1000
