"""How a reader finds their way through the page: links, walks, views, derivations, keys, languages, small screens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from glassformer.page import build
from glassformer.tracing import Trace, tensors_of

from .reader import Reader, eventually, number

pytestmark = pytest.mark.browser

if TYPE_CHECKING:
    Open = Callable[..., Any]

ATTN = "blocks.0.attn"


# ---- walking


def test_links_lead_from_a_gradient_through_the_loss_back_to_the_tokens(reader: Reader) -> None:
    reader.look_at(f"{ATTN}.W_Q.grad", 1)
    way = [
        (f"{ATTN}.Q.grad", 1), (f"{ATTN}.S.grad", 2), (f"{ATTN}.A.grad", 2), (f"{ATTN}.Z.grad", 2),
        (f"{ATTN}.O.grad", 2), ("blocks.0.R.grad", 2), ("head.logits.grad", 5), ("head.p", 5), ("head.logits", 5),
        ("blocks.0.R", 2), (f"{ATTN}.O", 2), (f"{ATTN}.Z", 2), (f"{ATTN}.A", 2), (f"{ATTN}.S", 2), (f"{ATTN}.Q", 1),
        ("embed.X", 3), ("embed.t", 1),
    ]  # fmt: skip
    for key, flat in way:
        reader.follow(key, flat)
        eventually(reader.inspector.locator(".cell-id code")).to_contain_text(f"{key}[")
        assert reader.name == f"{key}[{','.join(map(str, reader.index(key, flat)))}]"
    reader.page.get_by_role("button", name="Back to the number before").click()
    eventually(reader.inspector.locator(".cell-id code")).to_have_text("embed.X[1,1]")
    reader.page.keyboard.press("]")
    eventually(reader.inspector.locator(".cell-id code")).to_have_text("embed.t[1]")


def test_an_operand_inside_a_formula_is_a_link_to_its_cell(reader: Reader) -> None:
    reader.look_at(f"{ATTN}.A", 2)
    reader.inspector.locator(".arithmetic .live [data-op]").first.click()
    eventually(reader.inspector.locator(".cell-id code")).to_have_text(f"{ATTN}.S[0,1,0]")
    assert reader.page.locator("dialog").count() == 0


def test_a_number_names_every_number_that_reads_it(reader: Reader) -> None:
    reader.look_at("embed.E", 0)
    links = reader.inspector.get_by_role("group", name="It is read by").locator("[data-goto]")
    eventually(links.first).to_be_visible()
    assert {link.get_attribute("data-goto") for link in links.all()} == {"embed.X:0", "embed.E.new:0"}
    # With a gradient: the two rows of the query's score, and the keys' gradients that the query multiplies.
    reader.look_at(f"{ATTN}.Q", 1)
    eventually(reader.inspector.locator(".cell-id code")).to_have_text(f"{ATTN}.Q[0,1,0]")
    read_by = {link.get_attribute("data-goto") for link in links.all()}
    assert read_by == {f"{ATTN}.S:2", f"{ATTN}.S:3", f"{ATTN}.K.grad:0", f"{ATTN}.K.grad:1"}


@pytest.mark.parametrize(
    ("key", "flat", "last"),
    [(f"{ATTN}.W_Q", 1, "loss.L:0"), ("embed.E", 0, "loss.L:0"), (f"{ATTN}.W_Q.grad", 1, "loss.L.grad:0"),
     ("embed.E.new", 0, "loss.L.after:0")],
)  # fmt: skip
def test_the_way_to_the_loss_ends_there(reader: Reader, key: str, flat: int, last: str) -> None:
    reader.look_at(key, flat)
    eventually(reader.inspector.locator(".way li").last.locator("[data-goto]")).to_have_attribute("data-goto", last)


def test_arithmetic_result_record_and_witnesses_agree(reader: Reader, toy: Trace) -> None:
    reader.look_at("embed.X.grad", 0)
    result = reader.inspector.locator('[data-role="result"]')
    eventually(result).to_be_visible()
    assert number(result.inner_text()) == pytest.approx(float(toy["embed.X.grad"][0, 0]), abs=1e-15)
    shares = [number(text) for text in reader.inspector.locator(".via .digits").all_inner_texts()]
    assert len(shares) == 4
    assert sum(shares) == pytest.approx(float(toy["embed.X.grad"][0, 0]), abs=2e-6)
    reader.look_at(f"{ATTN}.W_Q.grad", 1)
    eventually(reader.inspector.locator(".witnesses tbody tr")).to_have_count(3)
    values = [number(text) for text in reader.inspector.locator(".witnesses tbody td:nth-child(2)").all_inner_texts()]
    assert values == pytest.approx([0.13356231995910944] * 3, abs=3e-11)


@pytest.mark.parametrize(("walk", "first"), [("query", "embed.t[1]"), ("embedding", "embed.E[0,0]")])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_guided_walk_looks_at_a_cell_in_every_step(
    open_page: Open, toy: Trace, toy_header: dict[str, Any], lang: str, walk: str, first: str
) -> None:
    page = open_page(build(toy_header, tensors_of(toy), lang=lang)).page
    reader = Reader(page)
    page.locator(f'[data-walk="{walk}"]').click()
    eventually(reader.inspector.locator(".cell-id code")).to_have_text(first)
    steps = int(page.locator('[data-role="walk-step"]').inner_text().split("/")[1])
    seen = [reader.name]
    for at in range(2, steps + 1):
        page.keyboard.press("n")
        eventually(page.locator('[data-role="walk-step"]')).to_have_text(f"{at} / {steps}")
        page.wait_for_function("before => document.querySelector('.cell-id code').textContent !== before", arg=seen[-1])
        seen.append(reader.name)
        assert "{" not in page.locator(".walk p").inner_text()
    assert len(set(seen)) == steps
    assert seen[-1] == "loss.L.after"


# ---- views, derivations, the update


def test_the_update_view_tells_what_the_trace_tells(reader: Reader, toy: Trace) -> None:
    reader.page.keyboard.press("3")
    rows = reader.page.locator(".update-panel table.figures").nth(1).locator("tfoot tr td.digits")
    eventually(rows.first).to_be_visible()
    told = [number(text) for text in rows.all_inner_texts()]
    assert told == pytest.approx([toy.analysis.predicted, toy.analysis.exact], abs=1e-6)
    order = [number(text) for text in reader.page.locator(".wrong-order td.digits").all_inner_texts()]
    assert order[:2] == pytest.approx([float(toy["loss.L.after"]), toy.analysis.sequential.loss], abs=1e-8)
    table = reader.page.locator(".update-panel table.figures").first
    probabilities = [number(text) for text in table.locator("tbody tr:nth-child(4) td").all_inner_texts()]
    assert probabilities == pytest.approx([0.078714, 0.171807, 0.093093], abs=1e-6)


def test_before_and_after_stand_in_one_table(reader: Reader) -> None:
    reader.page.keyboard.press("5")
    cell = reader.scroll_to(f"{ATTN}.A").locator(f'td:has(> [data-cell="{ATTN}.A:2"])')
    eventually(cell.locator("button")).to_have_text(["0.731059", "0.713748"])


def test_every_derivation_unfolds_to_one_number(reader: Reader, toy_header: dict[str, Any]) -> None:
    for derivation in toy_header["derivations"]:
        place = reader.page.locator(f'[id="derivation-{derivation["id"]}"]')
        place.locator("h3 button").click()
        place.get_by_label("with this run’s numbers").check()
        if len(derivation["steps"]) > 1:
            eventually(place.locator(".step")).to_have_count(1)
            place.get_by_role("button", name="All steps").click()
        eventually(place.locator(".step-value b")).to_have_count(len(derivation["steps"]))
        values = [number(text) for text in place.locator(".step-value b").all_inner_texts()]
        assert values == pytest.approx([values[-1]] * len(values), abs=1e-12), derivation["id"]


def test_the_notes_labels_can_be_shown_in_place_of_letters(reader: Reader) -> None:
    reader.page.locator("#labels").select_option("clinic")
    eventually(reader.page.locator(f'[id="card-{ATTN}.A"] thead th')).to_have_text(["患者服用华法林后", "出现"])
    eventually(reader.page.locator("#target-1 option:checked")).to_have_text("黑便")


def test_parts_open_and_close_in_page_and_map(reader: Reader) -> None:
    part = reader.page.locator(f'[id="part-{ATTN}"]')
    rows = reader.page.locator(".map-row").count()
    part.locator(".part-title button").click()
    eventually(part.locator(".card")).to_have_count(0)
    assert reader.page.locator(".map-row").count() < rows
    reader.look_at(f"{ATTN}.V", 0)
    eventually(part.locator(".card.chosen")).to_have_count(1)


def test_the_map_draws_an_arc_for_every_reading(reader: Reader, toy_header: dict[str, Any]) -> None:
    """Everything is open, so every edge between two quantities of the forward pass has its own arc."""

    def read(expr: Any) -> set[str]:
        if not isinstance(expr, list):
            return set()
        own = {expr[1]} if expr and expr[0] == "ref" else set()
        return own.union(*(read(part) for part in expr))

    edges = {(name, s["target"]) for s in toy_header["statements"] if s["face"] == "" for name in read(s["expr"])}
    assert reader.page.locator(".arc").count() == len(edges)


# ---- strangers' text


STRANGE = (
    "</script><img src=x onerror=alert(1)>",
    "\x00\x1b[31m\n\t \u202egnp.exe",
    "$\\href{javascript:alert(1)}{x}$ =1+1",
)
SHOWN = ("</script><img src=x onerror=alert(1)>", "␀␛[31m␊␉ ⟨U+202E⟩gnp.exe", "$\\href{javascript:alert(1)}{x}$ =1+1")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_strange_tokens_are_shown_as_they_are_and_do_nothing(
    open_page: Open, toy: Trace, toy_header: dict[str, Any], lang: str
) -> None:
    header = {**toy_header, "vocabulary": list(STRANGE), "labels": []}
    page = open_page(build(header, tensors_of(toy), lang=lang)).page
    reader = Reader(page)
    eventually(page.locator("#token-0 option")).to_have_text(list(SHOWN))
    eventually(reader.scroll_to("head.p").locator("thead th")).to_have_text(list(SHOWN))
    for key in "12345":
        page.keyboard.press(key)
        assert page.evaluate("() => document.images.length + document.querySelectorAll('main a').length") == 0
    for name, flat in [("embed.t", 0), ("head.p", 5), ("loss.L", 0)]:
        reader.look_at(name, flat)
        eventually(reader.inspector.locator(".cell-id code")).to_contain_text(name)
    page.locator("#token-0").select_option("2")
    eventually(page.locator(".edited-note")).to_be_visible()


# ---- keys, languages, themes, paper, small screens


def test_keys_choose_the_view(reader: Reader) -> None:
    for key, view in zip("234561", ["gradient", "update", "after", "compare", "probes", "forward"], strict=True):
        reader.page.keyboard.press(key)
        eventually(reader.page.locator(f'[data-view="{view}"]')).to_have_attribute("aria-pressed", "true")
    reader.page.keyboard.press("?")
    eventually(reader.page.get_by_role("dialog", name="Help")).to_be_visible()
    reader.page.keyboard.press("2")
    reader.page.keyboard.press("Escape")
    assert reader.view == "forward"


def test_single_keys_can_be_turned_off(reader: Reader) -> None:
    reader.page.keyboard.press("?")
    reader.page.get_by_label("single keys work").uncheck()
    reader.page.keyboard.press("Escape")
    reader.page.keyboard.press("2")
    assert reader.view == "forward"


def test_arrow_keys_walk_through_a_table_and_enter_looks(reader: Reader) -> None:
    first = reader.cell("embed.E", 0)
    first.focus()
    for key in ["ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft"]:
        reader.page.keyboard.press(key)
    eventually(reader.cell("embed.E", 4)).to_be_focused()
    reader.page.keyboard.press("Enter")
    eventually(reader.inspector.locator(".cell-id code")).to_have_text("embed.E[2,0]")
    reader.page.keyboard.press("e")
    eventually(reader.page.locator("#edit-cell")).to_be_focused()
    reader.page.keyboard.press("ArrowUp")
    eventually(reader.cell("embed.E", 4)).to_have_text("1.1")


def test_the_language_switch_changes_everything_and_loses_nothing(reader: Reader) -> None:
    reader.look_at(f"{ATTN}.A", 2)
    reader.page.keyboard.press("Escape")
    reader.page.get_by_role("button", name="中文").click()
    eventually(reader.page.locator('[data-view="forward"]')).to_contain_text("前向")
    assert reader.page.evaluate("() => document.documentElement.lang") == "zh-CN"
    assert reader.name == f"{ATTN}.A[0,1,0]"
    reader.page.keyboard.press("2")
    words = reader.page.locator("body").inner_text()
    for english in ["Forward", "Gradient", "Embedding", "Attention", "Derivation", "Formula", "witness", "Position"]:
        assert english not in words, english
    reader.page.keyboard.press("l")
    eventually(reader.page.locator('[data-view="forward"]')).to_contain_text("Forward")


def test_the_theme_follows_the_system_until_the_reader_chooses(open_page: Open, toy_page: str) -> None:
    page = open_page(toy_page, color_scheme="dark").page
    theme = "() => document.documentElement.dataset.theme"
    eventually(page.locator("main")).to_be_visible()
    assert page.evaluate(theme) == "dark"
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(theme) == "light", "paper is light"
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(theme) == "dark"
    page.keyboard.press("t")
    eventually(page.locator('[data-tool="theme"]')).to_contain_text("light")
    assert page.evaluate(theme) == "light"
    page.emulate_media(color_scheme="light")
    page.keyboard.press("t")
    page.keyboard.press("t")
    eventually(page.locator('[data-tool="theme"]')).to_contain_text("system")
    assert page.evaluate(theme) == "light"


def test_paper_shows_everything(reader: Reader) -> None:
    reader.page.keyboard.press("c")
    eventually(reader.page.locator(".card")).to_have_count(0)
    reader.page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    # At once, not a moment later: the browser takes its picture right after this event.
    assert reader.page.locator(".card").count() > 20
    assert reader.page.locator(".formula-waiting, .waiting").count() == 0
    reader.page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    eventually(reader.page.locator(".card")).to_have_count(0)


@pytest.mark.parametrize("width", [360, 820, 1100])
def test_the_page_fits_small_screens(open_page: Open, toy_page: str, width: int) -> None:
    page = open_page(toy_page, viewport={"width": width, "height": 760}).page
    reader = Reader(page)
    for key in "12345":
        page.keyboard.press(key)
        assert page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0
    page.keyboard.press("1")
    reader.scroll_to(f"{ATTN}.A")
    reader.cell(f"{ATTN}.A", 2).click()
    eventually(reader.inspector.locator(".cell-head")).to_be_in_viewport()
    eventually(reader.cell(f"{ATTN}.A", 2)).to_be_in_viewport()


def test_the_address_names_the_cell(open_page: Open, toy_page: str) -> None:
    page = open_page(toy_page).page
    reader = Reader(page)
    reader.look_at(f"{ATTN}.S.grad", 2)
    eventually(reader.inspector.locator(".cell-id code")).to_have_text(f"{ATTN}.S.grad[0,1,0]")
    page.wait_for_url("**#cell=blocks.0.attn.S.grad:2")
    page.reload()
    eventually(reader.inspector.locator(".cell-id code")).to_have_text(f"{ATTN}.S.grad[0,1,0]")
    assert reader.view == "gradient"
