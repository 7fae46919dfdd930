"""How long one edit of the 24-parameter model takes in the page: set a number, then everything after it again.

Prints the median and the worst of many edits in Chromium, and their ratio to the limit of 5 ms and to NumPy evaluating
the same statements on this machine, measured in turns with the browser.

    python benchmarks/page_edit.py [--rounds 5] [--edits 200]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from glassformer import page, trace_toy24
from glassformer.notation import key, run
from glassformer.tracing import Trace, header_of, tensors_of

LIMIT_MS = 5.0

EDITS = """
count => {
  const { engine } = window.glassformer, times = [];
  for (let k = 0; k < count; k++) {
    const begun = performance.now();
    engine.setCell("blocks.0.attn.W_Q", k % 2, Math.sin(k));
    engine.recompute();
    times.push(performance.now() - begun);
  }
  engine.reset();
  return times;
}
"""


def numpy_ms(trace: Trace) -> float:
    """One recomputation by the Python evaluator: forward, gradients, update, forward after, in milliseconds."""
    program = trace.program
    computed = {s.target for s in program.forward}
    leaves = {id: trace.values[id] for id in program.quantities if id not in computed}
    begun = time.perf_counter()
    known = run(
        (*program.statements, *trace.update), {**leaves, "loss.L.grad": trace.values["loss.L.grad"]}, program.scalars
    )
    run(program.forward, {**leaves, **{id: known[key(id, "new")] for id in trace.parameters}}, program.scalars)
    return 1000 * (time.perf_counter() - begun)


def browser_ms(opened: Page, edits: int) -> list[float]:
    """The time of each of ``edits`` edits in the page, in milliseconds (Chromium's clock ticks every 0.1 ms)."""
    return opened.evaluate(EDITS, edits)


def main() -> None:
    """Measure in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--edits", type=int, default=200)
    options = parser.parse_args()
    trace = trace_toy24()
    in_page: list[float] = []
    in_numpy: list[float] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "toy24.html"
        file.write_text(page.build(header_of(trace), tensors_of(trace)), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"))
        opened = browser.new_context(offline=True).new_page()
        opened.goto(file.as_uri())
        browser_ms(opened, options.edits)
        for _ in range(options.rounds):
            in_page += browser_ms(opened, options.edits)
            in_numpy.append(numpy_ms(trace))
        browser.close()
    mean, worst, numpy = statistics.fmean(in_page), max(in_page), statistics.median(in_numpy)
    print(f"load average            {os.getloadavg()[0]:.1f}")
    print(f"page, mean of {len(in_page)} edits  {mean:.3f} ms   {mean / LIMIT_MS:.3f} of the limit of {LIMIT_MS:g} ms")
    print(f"page, worst             {worst:.3f} ms   {worst / LIMIT_MS:.3f} of the limit")
    print(f"NumPy, median           {numpy:.3f} ms   the page takes {mean / numpy:.4f} of it")


if __name__ == "__main__":
    main()
