"""What a chapter may not contain: each kind is refused with its file and line, and with what to do."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import glassformer.book
from glassformer.bilingual import words
from glassformer.book import build
from glassformer.book.build import build_book, chapters_of, require_alike
from glassformer.book.exercises import EXERCISES
from glassformer.book.library import Library
from glassformer.book.resolve import Resolver
from glassformer.book.runs import library_with
from glassformer.book.syntax import ChapterError, read_chapter
from glassformer.errors import UserError
from glassformer.tracing.probes import Report

CHAPTERS = Path(glassformer.book.__file__).parent / "chapters"
HEAD = "# 6 Title\n\n## 6.2 Section\n\n"


def chapter(tmp_path: Path, text: str, lang: str = "en") -> Path:
    path = tmp_path / lang / "06.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (HEAD + "A sentence of its own.\n", 5, "a statement without status"),
        (HEAD + "::: theorem\nIt holds.\n:::\n", 5, "no status 'theorem'"),
        (HEAD + "::: example\nIt never ends.\n", 5, "a block that never ends"),
        (HEAD + "::: example\nThe share is 0.73.\n:::\n", 6, "a number typed by hand"),
        (HEAD + "::: example\nAbout 58% of it.\n:::\n", 6, "a number typed by hand"),
        (HEAD + "::: definition\nThus $a = b$.\n:::\n", 6, "typed mathematics"),
        (HEAD + "::: definition covers=6.2 colour=red\nIt.\n:::\n", 5, "no option 'colour'"),
        (HEAD + "::: definition\n:::\n", 5, "an empty block"),
        ("::: note\nBefore everything.\n:::\n", 1, "a block before the chapter's heading"),
        ("# 6 Title\n\n## 7.2 Section\n", 3, "section 7.2 stands in chapter 6"),
        ("# 6 Title\n\n# 7 Title\n", 3, "a second chapter in one file"),
        ("# 6.1 Title\n", 1, "# 6.1"),
        ("\n", 1, "no chapter heading"),
        (HEAD + "::: example\nAbout ≈ that.\n:::\n", 6, "a number typed by hand"),
        (HEAD + "::: example\nOne.\n\n[[chain 'open]]\n:::\n", 8, "arguments of chain that cannot be read"),
        (HEAD + "::: example\nOne.\n:::\n\nTwo.\n", 9, "a statement without status"),
    ],
)
def test_a_chapter_that_cannot_be_read_is_refused_with_its_file_and_line(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    with pytest.raises(ChapterError, match=re.escape(says)) as refused:
        read_chapter(chapter(tmp_path, text), "en")
    assert refused.value.fact.startswith(f"en/06.md:{line}: ")
    assert refused.value.next_step


@pytest.mark.parametrize(
    ("directive", "says"),
    [
        ("[[formula attn.Nothing]]", "no formula of attn.Nothing"),
        ("[[chain no-such]]", "no chain no-such"),
        ("[[example huII]]", 'Did you mean "hull"?'),
        ("[[exercise shape]]", 'Did you mean "shapes"?'),
        ("[[figure masc]]", 'Did you mean "mask"?'),
        ("[[trace toy25]]", 'Did you mean "toy24"?'),
        ("[[probe effect]]", "no probe effect"),
        ("[[picture x]]", "no directive [[picture …]]"),
        ("It is {num toy24 A[9,9,9]}.", "no number A[9,9,9] in toy24"),
        ("It is {sym attn.Nothing}.", "no symbol attn.Nothing"),
        ("See {source R9}.", "no source R9"),
        ("[[trace clinic]]", "no run clinic"),
        ("[[table glosary]]", 'Did you mean "glossary"?'),
        ("It is {num toy24 A[0,1,1]}.", "no number A[0,1,1] in toy24"),
        ("It is {num toy25 L}.", "no number L in toy25"),
        ("It is {num measured guess}.", "no number guess in measured"),
        ("A {sym attn.A of=decodr}.", 'Did you mean "decoder" or'),
        ("[[example hull mask]]", "example with 2 arguments"),
        ("It is {twice 2}.", "no inline directive {twice …}"),
    ],
)
def test_a_directive_that_means_nothing_is_refused_where_it_stands(tmp_path: Path, directive: str, says: str) -> None:
    path = chapter(tmp_path, f"{HEAD}::: example\n{directive}\n:::\n")
    with pytest.raises(ChapterError, match=re.escape(says)) as refused:
        Resolver(Library(), EXERCISES).chapter(read_chapter(path, "en"))
    assert refused.value.fact.startswith("en/06.md:6: ")


def test_two_languages_that_differ_in_structure_are_refused(tmp_path: Path) -> None:
    ours = read_chapter(chapter(tmp_path, f"{HEAD}::: example\nOne.\n:::\n"), "en")
    theirs = read_chapter(chapter(tmp_path, f"{HEAD}::: boundary\n一。\n:::\n", "zh"), "zh")
    with pytest.raises(ChapterError, match="en has 'block example' where zh has 'block boundary'"):
        require_alike(ours, theirs)


def test_a_missing_chapter_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChapterError, match=r"en/01\.md:1: the chapter is missing"):
        chapters_of(tmp_path)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """All chapters, to be broken."""
    shutil.copytree(CHAPTERS, tmp_path / "chapters")
    return tmp_path / "chapters"


def test_a_chapter_without_its_translation_is_named(copied: Path) -> None:
    (copied / "zh" / "09.md").unlink()
    with pytest.raises(ChapterError, match=r"zh/09\.md:1: the chapter is missing"):
        chapters_of(copied)


def test_a_chapter_under_the_name_of_another_is_refused(copied: Path) -> None:
    shutil.copy(copied / "en" / "08.md", copied / "en" / "09.md")
    with pytest.raises(ChapterError, match=r"en/09\.md:1: chapter 8 in 09\.md"):
        chapters_of(copied)


def test_a_directive_in_one_language_only_is_named(copied: Path) -> None:
    path = copied / "en" / "10.md"
    path.write_text(path.read_text("utf-8").replace("[[chain mean-loss]]\n", ""), "utf-8")
    with pytest.raises(ChapterError, match="directive chain mean-loss"):
        chapters_of(copied)


def test_a_link_that_leads_nowhere_is_refused_where_it_stands(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = 0
    for lang in ("en", "zh"):
        path = copied / lang / "10.md"
        text = path.read_text("utf-8")
        assert text.count("{see 9.4}") == 1
        line = text[: text.index("{see 9.4}")].count("\n") + 1 if lang == "en" else line
        path.write_text(text.replace("{see 9.4}", "{see 9.5}"), "utf-8")
    names = ("effect", "linearity", "gradients", "prefixes", "teacher", "distribution", "cuts", "shortcut", "kinds")
    reports = {name: Report(name, words("title", "标题"), "measured", ()) for name in names}
    ends = [f"{name}_{fact}" for name in ("marked", "tossed") for fact in ("loss", "lied_to")]
    facts: dict[str, float] = dict.fromkeys(("p", "truth", "divergence", "entropy", "parameters", *ends), 0.5)
    monkeypatch.setattr(build, "template", lambda: "")
    with pytest.raises(ChapterError, match=r"a dead link to 9\.5") as refused:
        build_book(Library(facts=facts, reports=reports), chapters_of(copied))
    # A prose's line is that of its first.
    found = re.match(r"en/10\.md:(\d+): ", refused.value.fact)
    assert found is not None
    assert int(found[1]) == line


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "manifest.json").write_text('{"format": ')
    for path in (tmp_path, tmp_path / "nothing", damaged):
        with pytest.raises(UserError) as refused:
            library_with(path)
        assert path.name in refused.value.fact
