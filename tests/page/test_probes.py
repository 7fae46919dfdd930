"""Probes and lemmas in the page: what was recorded is shown, as data, and said to be of the recorded run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import torch

import glassformer
from glassformer.model import AttentionConfig, Decoder, DecoderConfig
from glassformer.model.toy24 import toy24_model
from glassformer.page import build
from glassformer.tracing import Trace, header_of, tensors_of
from glassformer.tracing.request import Command

from .reader import Reader, eventually, number
from .test_document import HOSTILE

if TYPE_CHECKING:
    from browsing import Opened

    Open = Callable[..., Opened]

pytestmark = pytest.mark.browser

SCREEN = {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def probed_header(toy: Trace, toy_header: dict[str, Any]) -> dict[str, Any]:
    reports = toy.with_probes(toy24_model()).probes
    assert reports is not None
    return {**toy_header, "probes": [report.plain() for report in reports]}


def looking_at_probes(open_page: Open, header: dict[str, Any], trace: Trace, **options: Any) -> Reader:
    reader = Reader(open_page(build(header, tensors_of(trace), **options), viewport=SCREEN).page)
    reader.page.keyboard.press("6")
    eventually(reader.page.locator(".probes h2")).to_be_visible()
    return reader


def test_every_report_stands_in_the_page_with_its_tables_and_the_status_of_its_notes_in_both_languages(
    open_page: Open, toy: Trace, probed_header: dict[str, Any]
) -> None:
    reader = looking_at_probes(open_page, probed_header, toy)
    for language in ("en", "zh"):
        for report in probed_header["probes"]:
            place = reader.page.locator(f"#probe-{report['kind']}")
            told = place.text_content() or ""
            eventually(place.locator("h3")).to_contain_text(report["title"][language])
            assert not [t["title"][language] for t in report["tables"] if t["title"][language] not in told]
            assert not [note["text"][language] for note in report["notes"] if note["text"][language] not in told]
            assert place.locator(".note .status").count() == len(report["notes"])
        reader.page.keyboard.press("l")
    rows = reader.page.locator("#probe-variance tbody tr").first.locator("td").all_inner_texts()
    assert rows[:2] == ["1", "1"], "layers and heads count from 1"


def test_attention_stands_beside_its_measured_effect_and_leads_to_its_cell(
    open_page: Open, toy: Trace, probed_header: dict[str, Any]
) -> None:
    reader = looking_at_probes(open_page, probed_header, toy)
    values = probed_header["probes"][0]["values"]
    lines = reader.page.locator("#probe-attention .effect tbody tr")
    shown = [[number(text) for text in line.locator("td .digits").all_inner_texts()] for line in lines.all()]
    wanted = zip(
        values["A"][0], values["cells_loss"][0], values["norm"][0], values["gradient_times_value"][0], strict=True
    )
    assert shown == [pytest.approx(row, abs=5e-4) for row in wanted]
    assert lines.first.locator(".k-effect .bar-negative").count() == (values["cells_loss"][0][0] < 0)
    lines.first.get_by_role("button").click()
    eventually(reader.inspector.locator(".cell-id code")).to_have_text("blocks.0.attn.A[0,1,0]")
    assert reader.view == "probes"
    reader.look_at("blocks.0.attn.A.grad", 2)
    eventually(reader.page.locator('[data-view="gradient"]')).to_have_attribute("aria-pressed", "true")


def test_after_an_edit_the_probes_are_said_to_be_those_of_the_recorded_run(
    open_page: Open, toy: Trace, probed_header: dict[str, Any]
) -> None:
    reader = looking_at_probes(open_page, probed_header, toy)
    said = reader.page.locator(".probes [role=status]")
    assert said.count() == 0
    reader.page.locator("#token-0").select_option("2")
    eventually(said).to_contain_text("those of the recorded run")
    reader.page.get_by_role("button", name="Reset").click()
    eventually(said).to_have_count(0)


def test_where_no_probe_was_asked_for_the_page_says_so_and_names_the_command(
    open_page: Open, toy: Trace, toy_header: dict[str, Any]
) -> None:
    options = ["--set", "W_Q[1,0]=0.7", "--optimizer", "adamw"]
    header = {**toy_header, "command": {"subject": "toy24", "text": None, "options": options}}
    reader = looking_at_probes(open_page, header, toy, lang="zh")
    missing = reader.page.locator(".probes .missing")
    eventually(missing).to_contain_text("未记录")
    told = "glassformer trace toy24 --set 'W_Q[1,0]=0.7' --optimizer adamw --probes --html PAGE.html"
    assert missing.locator("code").inner_text() == told


def test_hostile_tokens_in_probes_and_commands_are_shown_as_text(open_page: Open, built: str) -> None:
    vocabulary = tuple(f"{HOSTILE[k % len(HOSTILE)]}{k}" for k in range(40))
    torch.manual_seed(0)
    config = DecoderConfig.alike(
        1, vocab_size=40, context=40, d=4, attention=AttentionConfig(heads=2, d_k=2, d_v=2), ffn=None
    )
    model = Decoder(config)
    trace = glassformer.trace(model, list(range(40)), vocabulary=vocabulary, witness_cells=0).with_probes(model)
    header = header_of(trace.told(Command(HOSTILE[0], HOSTILE[1], ("--optimizer", HOSTILE[2]))))
    reader = looking_at_probes(open_page, header, trace)
    scripts = "() => document.querySelectorAll('main script, main img, main iframe').length"
    assert reader.page.evaluate(scripts) == 0
    lines = reader.page.locator("#probe-attention .effect tbody tr")
    assert lines.count() == 16
    reader.page.get_by_role("button", name="all 39 positions").click()
    eventually(lines).to_have_count(39)
    assert reader.page.locator(".probes .more").count() > 0


def test_a_lemma_unfolds_with_its_premises_and_what_each_step_needs_of_them(
    reader: Reader, toy_header: dict[str, Any]
) -> None:
    lemma = next(each for each in toy_header["lemmas"] if each["id"] == "variance-of-a-dot-product")
    place = reader.page.locator(f"#lemma-{lemma['id']}")
    place.scroll_into_view_if_needed()
    place.locator("h3 button").click()
    eventually(place.locator(".premises li")).to_have_text([premise["en"] for premise in lemma["premises"].values()])
    place.get_by_role("button", name="All steps").click()
    eventually(place.locator(".step")).to_have_count(len(lemma["steps"]))
    names = list(lemma["premises"])
    for step, shown in zip(lemma["steps"], place.locator(".step").all(), strict=True):
        eventually(shown.locator(".reason")).to_contain_text(step["reason"]["en"])
        needed = ", ".join(f"({names.index(name) + 1})" for name in step["premises"])
        assert (shown.locator(".premise-refs").all_inner_texts() or [""])[0] == (needed and f"by premise {needed}")
    assert reader.page.locator(".lemmas .derivation").count() == len(toy_header["lemmas"])
