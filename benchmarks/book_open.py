"""How fast the book opens: the ratio to an empty page of the same size, opened in turns with it.

    python benchmarks/book_open.py BOOK.html [--rounds 9] [--at '#zh-11']

Prints medians and the ratio against the limit of three. ``BOOK.html`` is what ``glassformer book`` writes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from page_open import EMPTY, RATIO_LIMIT, opening_ms
from playwright.sync_api import sync_playwright

READY = {"": ".contents a"}
CHAPTER = "article.chapter.shown .block"


def main() -> None:
    """Measure in turns and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("book", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--at", default="")
    options = parser.parse_args()
    size = len(options.book.read_bytes())
    whole: list[float] = []
    empty: list[float] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        nothing = Path(folder) / "empty.html"
        nothing.write_text(EMPTY.format("A" * (size - len(EMPTY) + 2)), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"))
        for _ in range(options.rounds):
            empty.append(opening_ms(browser, nothing, "p"))
            whole.append(opening_ms(browser, options.book, READY.get(options.at, CHAPTER), options.at))
        browser.close()
    opened, least = statistics.median(whole), statistics.median(empty)
    print(f"load average              {os.getloadavg()[0]:.1f}")
    print(f"book of {size / 1e6:.1f} MB {options.at:12}  {opened:.0f} ms   an empty page of that size {least:.0f} ms")
    print(
        f"ratio                     {opened / least:.2f}   limit {RATIO_LIMIT:g}   of the fastest {min(whole) / min(empty):.2f}"
    )


if __name__ == "__main__":
    main()
