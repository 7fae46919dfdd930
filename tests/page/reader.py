"""What a reader of the page does and sees, in the words of the tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

PRINTED_MINUS = "−"


def eventually(locator: Locator) -> Any:
    """Playwright's patient assertion: the page draws a moment after it computes."""
    from playwright.sync_api import expect

    return expect(locator)


class Reader:
    """A reader before an opened page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def cell(self, key: str, flat: int) -> Locator:
        """The button of a number in its table."""
        return self.page.locator(f'main [data-cell="{key}:{flat}"]')

    def scroll_to(self, id: str) -> Locator:
        """Bring the card of a quantity near the screen, so that its numbers are drawn."""
        card = self.page.locator(f'[id="card-{id}"]')
        card.scroll_into_view_if_needed()
        return card

    def look_at(self, key: str, flat: int) -> None:
        """Choose a number by its name, wherever it is."""
        self.page.locator("#goto").fill(f"{key}[{','.join(map(str, self.index(key, flat)))}]")
        self.page.locator("#goto").press("Enter")

    def index(self, key: str, flat: int) -> list[int]:
        shape = self.page.evaluate("key => [...window.glassformer.engine.shape(key)]", key)
        index = []
        for size in reversed(shape):
            index.append(flat % size)
            flat //= size
        return index[::-1]

    def at_rest(self, locator: Locator) -> dict[str, float]:
        """Where something is once the cards above it have taken their final heights and nothing moves any more."""
        before: Any = None
        for _ in range(50):
            now = locator.bounding_box()
            if now is not None and now == before:
                return dict(now)
            before = now
            self.page.wait_for_timeout(100)
        raise AssertionError("the page does not come to rest")

    def follow(self, key: str, flat: int) -> None:
        """Follow a link to a number that the looked-at one reads."""
        self.inspector.locator(f'.arithmetic .cell-list [data-goto="{key}:{flat}"]').first.click()

    def type_number(self, text: str) -> None:
        """Type into the field of the looked-at number and press Enter."""
        field = self.page.locator("#edit-cell")
        field.fill(text)
        field.press("Enter")

    @property
    def inspector(self) -> Locator:
        return self.page.locator("#inspector")

    @property
    def name(self) -> str:
        """The looked-at number as the command line writes it."""
        return self.inspector.locator(".cell-id code").inner_text()

    @property
    def losses(self) -> list[float]:
        """The loss before and after the update, as printed at the top."""
        return [number(text) for text in self.page.locator(".losses .cell-link-value").all_inner_texts()]

    @property
    def view(self) -> str:
        return str(self.page.locator('[data-view][aria-pressed="true"]').get_attribute("data-view"))


def number(text: str) -> float:
    """A printed number: ``−0.133562``, ``1.784·10⁻⁴``."""
    plain = text.strip().replace(PRINTED_MINUS, "-").replace("∞", "inf")
    power = re.fullmatch(r"(.*)·10(⁻?)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", plain)
    if not power:
        return float(plain)
    digits = "".join(str("⁰¹²³⁴⁵⁶⁷⁸⁹".index(c)) for c in power[3])
    return float(f"{power[1]}e{'-' if power[2] else ''}{digits}")
