"""Chapters 8 to 14: both languages read, resolve and keep the same promises; what they say of the toy is so."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
import pytest

from book_pieces import chapter
from glassformer.bilingual import same
from glassformer.book.coverage import PROMISES
from glassformer.book.examples import parts, training, use, writing
from glassformer.book.exercises import EXERCISES, b
from glassformer.book.library import Library
from glassformer.book.library import resolved as resolved_id
from glassformer.book.resolve import Resolver
from glassformer.book.syntax import Prose
from glassformer.tracing.probes import Report

OURS = (*parts.EXAMPLES, *training.EXAMPLES, *writing.EXAMPLES, *use.EXAMPLES)
NUMBERS = range(8, 15)
LANGUAGES = ("zh", "en")
SECTIONS = {8: 7, 9: 4, 10: 9, 11: 7, 12: 5, 13: 4, 14: 4}

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def library() -> Library:
    """Chapters resolve without a trained model: its numbers and probes are stand-ins here."""
    names = ("distribution", "teacher", "linearity", "effect", "prefixes", "shortcut", "kinds")
    ends = [f"{name}_{fact}" for name in ("marked", "tossed") for fact in ("loss", "lied_to")]
    facts: dict[str, float] = dict.fromkeys(("p", "truth", "parameters", "divergence", "entropy", *ends), 0.5)
    return Library(facts=facts, reports={name: Report(name, same(name), "measured", (), ()) for name in names})


@pytest.fixture(scope="module")
def resolved(library: Library) -> dict[str, tuple[Resolver, str]]:
    found = {}
    for lang in LANGUAGES:
        resolver = Resolver(library, EXERCISES)
        found[lang] = (resolver, "\n".join(resolver.chapter(chapter(number, lang)) for number in NUMBERS))
    return found


@pytest.mark.parametrize("number", NUMBERS)
def test_both_languages_name_the_same_numbers_in_the_same_sections(number: int) -> None:
    """Inline directives are outside the skeleton: a number told in one language only would go unnoticed."""

    def named(lang: str) -> list[tuple[str, list[str]]]:
        return [
            (section.number, sorted(n for p in block.parts if isinstance(p, Prose) for n in _inline(p.text)))
            for section, block in chapter(number, lang).blocks()
        ]

    assert named("zh") == named("en")


def _inline(text: str) -> list[str]:
    return re.findall(r"\{(?:num|sym|source|see) [^{}]+\}", text)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_promise_of_chapters_8_to_14_is_kept(resolved: dict[str, tuple[Resolver, str]], lang: str) -> None:
    covered = resolved[lang][0].used.covered
    ours = {promise.id for promise in PROMISES if promise.id.partition(".")[0] in {*map(str, NUMBERS), "letters"}}
    assert ours <= set(covered)
    assert all(promise == "letters" or promise in covered[promise] for promise in ours)


def test_every_example_exercise_and_derivation_has_a_place(
    resolved: dict[str, tuple[Resolver, str]], library: Library
) -> None:
    sources = {str(section) for n in NUMBERS for section in (s.number for s in chapter(n, "en").sections)}
    told = {id for id, chain in library.derivations.items() if chain["source"] in sources}
    for resolver, _ in resolved.values():
        assert resolver.used.examples >= {example.id for example in OURS}
        assert resolver.used.exercises >= {exercise.id for exercise in b.EXERCISES}
        assert resolver.used.chains == told


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_is_left_unresolved(resolved: dict[str, tuple[Resolver, str]], lang: str) -> None:
    text = resolved[lang][1]
    assert "\ue000" not in text
    assert not re.search(r"\[\[[a-z]+ |\{(num|sym|see|source) ", text)
    assert "nan" not in re.findall(r'<data class="num" value="([^"]+)"', text)


def test_chinese_chapters_say_词元_and_english_ones_have_no_chinese_punctuation() -> None:
    for number in NUMBERS:
        for _, block in chapter(number, "zh").blocks():
            for part in block.parts:
                assert not isinstance(part, Prose) or not re.search(r"\btokens?\b", part.text, re.IGNORECASE), part
        for _, block in chapter(number, "en").blocks():
            for part in block.parts:
                assert not isinstance(part, Prose) or not re.search("[，、；：？！（）“”]", part.text), part


def test_a_whole_chapter_is_called_a_chapter(resolved: dict[str, tuple[Resolver, str]]) -> None:
    shown = {lang: re.findall(r'<a class="see" href="[^"]+">([^<]+)</a>', text) for lang, (_, text) in resolved.items()}
    assert "chapter 11" in shown["en"]
    assert "第 11 章" in shown["zh"]
    assert "10.3" in shown["en"]
    assert "10.3 节" in shown["zh"]


def gradients(E: Array, W_Q: Array, W_K: Array, W_V: Array, W_O: Array, U: Array) -> tuple[Array, Array]:
    """Gradients of W_V and W_O of the model of chapter 11, by NumPy."""
    X = E[:2]
    S = np.where(np.tri(2) > 0, X @ W_Q @ (X @ W_K).T, -np.inf)
    A = np.exp(S) / np.exp(S).sum(1, keepdims=True)
    Z = A @ X @ W_V
    p = np.exp((X + Z @ W_O)[1] @ U)
    back = np.zeros((2, 2))
    back[1] = (p / p.sum() - np.eye(3)[2]) @ U.T
    return (A @ X).T @ back @ W_O.T, Z.T @ back


def test_two_gradients_of_chapter_11_are_equal_because_both_matrices_are_the_identity(library: Library) -> None:
    values = library.toy24.values
    ids = {name: resolved_id(library.toy24.program, name) for name in ("E", "W_Q", "W_K", "W_V", "W_O", "U")}
    shapes = {"W_Q": (2, 1), "W_K": (2, 1), "W_V": (2, 2), "W_O": (2, 2)}
    start = {name: np.array(values[id], np.float64) for name, id in ids.items()}
    start = {name: x.reshape(shapes.get(name, x.shape)) for name, x in start.items()}
    for name in ("W_V", "W_O"):
        saved = np.asarray(values[f"{ids[name]}.grad"]).reshape(2, 2)
        np.testing.assert_allclose(gradients(**start)[name == "W_O"], saved, atol=1e-12)
    for name, x in start.items():
        for at in np.ndindex(x.shape):
            moved = {k: v.copy() for k, v in start.items()}
            moved[name][at] += 0.37
            one, other = gradients(**moved)
            assert np.allclose(one, other, atol=1e-12) == (name not in ("W_V", "W_O")), (name, at)


def test_the_numbers_of_chapter_11_are_those_of_the_notes(resolved: dict[str, tuple[Resolver, str]]) -> None:
    """As printed in the first edition: six decimals."""
    _, text = resolved["zh"]
    shown = set(re.findall(r"<data [^>]+>([^<]+)</data>", html.unescape(text)))
    assert shown >= {
        "0.731059", "0.268941", "1.268941", "2.541928", "0.33966", "0.581626", "−0.921286", "1.260945", "0.133562",
        "−0.133562", "0.921825", "1.055387", "0.425203", "1.466503", "0.871611", "0.986644", "0.116906", "1.761382",
        "0.171807", "0.556819", "0.271374", "0.713748",
    }  # fmt: skip
