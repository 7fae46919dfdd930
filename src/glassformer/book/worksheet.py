"""A worksheet for a class: exercises with numbers drawn from a seed, to print, and a sheet of answers."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..notation.numerals import number_text
from ..notation.symbols import plain_symbol, style_of
from ..page.document import LANGUAGES
from .example import Array, places_in
from .exercise import Choose, Compute, Exercise

_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {"title": "Worksheet", "answers": "Answers", "given": "Given", "find": "Find", "name": "Name", "seed": "seed",
           "choose": "Mark every right statement.", "right": "right", "wrong": "not right"},
    "zh": {"title": "练习单", "answers": "答案", "given": "已知", "find": "求", "name": "姓名", "seed": "种子",
           "choose": "标出所有正确的说法。", "right": "正确", "wrong": "不正确"},
}  # fmt: skip

_STYLE = """
body{font:16px/1.6 Georgia,"Noto Serif CJK SC","Songti SC",serif;max-width:46em;
margin:2em auto;padding:0 1em;color:black;background:white}
h1{font-size:1.5em}h2{font-size:1.1em;margin-top:2em}.of{color:dimgray;font-weight:normal}
.row{display:flex;flex-wrap:wrap;gap:1.2em;align-items:center;margin:.6em 0}
table{border-collapse:collapse;border-left:2px solid;border-right:2px solid;border-radius:6px;display:inline-table}
td{padding:.15em .6em;text-align:right;font-variant-numeric:tabular-nums;min-width:1.6em;height:1.4em}
.blank td{border:1px dotted gray}ol{padding-left:1.4em}section{break-inside:avoid}.answers{break-before:page}
"""


def worksheet(exercises: Iterable[Exercise], *, seed: int, lang: str) -> str:
    """HTML to print: every exercise with numbers drawn from ``seed``, and on a page of its own the answers."""
    said, rng = _WORDS[lang], np.random.default_rng(seed)
    asked: list[str] = []
    answered: list[str] = []
    for k, exercise in enumerate(exercises, 1):
        question, answer = (
            _compute(exercise, rng, lang) if isinstance(exercise, Compute) else _choose(exercise, rng, lang)
        )
        title = html.escape(exercise.title[lang]) if isinstance(exercise, Compute) else ""
        asked.append(f"<section><h2>{k} <span class='of'>{title}</span></h2>{question}</section>")
        answered.append(f"<section><h2>{k}</h2>{answer}</section>")
    head = f"<h1>{said['title']} <span class='of'>({said['seed']} {seed})</span></h1>"
    return (
        f'<!doctype html><html lang="{LANGUAGES[lang]}"><head><meta charset="utf-8"><title>{said["title"]} {seed}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>{head}'
        f"<p>{said['name']}: ______________________</p>{''.join(asked)}"
        f'<div class="answers"><h1>{said["answers"]}</h1>{"".join(answered)}</div></body></html>\n'
    )


def _compute(exercise: Compute, rng: np.random.Generator, lang: str) -> tuple[str, str]:
    said, program = _WORDS[lang], exercise.program()
    style = style_of(program)
    inputs = exercise.drawn(rng)
    values = exercise.values(inputs)
    # What tells places (token ids, targets) is counted from 1, as rows and columns are.
    places = places_in(program)
    given = "".join(_matrix(plain_symbol(style.name(id)), values[id] + (id in places)) for id in inputs)
    blanks, answers = [], []
    for ask in exercise.ask:
        id, at = (ask, None) if isinstance(ask, str) else ask
        name = plain_symbol(style.name(id)) + _index(at)
        value = values[id] if at is None else values[id][at]
        blanks.append(_matrix(name, np.asarray(value), blank=True))
        answers.append(_matrix(name, np.asarray(value)))
    question = (
        f"<p>{html.escape(exercise.text[lang])}</p><p>{said['given']}</p><div class='row'>{given}</div>"
        f"<p>{said['find']}</p><div class='row'>{''.join(blanks)}</div>"
    )
    return question, f"<div class='row'>{''.join(answers)}</div>"


def _index(at: Sequence[int] | None) -> str:
    return "" if at is None else f"<sub>{''.join(str(i + 1) for i in at)}</sub>"


def _matrix(name: str, value: Array, *, blank: bool = False) -> str:
    rows = np.atleast_2d(value) if value.ndim <= 2 else value.reshape(-1, value.shape[-1])
    body = "".join(
        f"<tr>{''.join('<td></td>' if blank else f'<td>{_number(x)}</td>' for x in row)}</tr>" for row in rows.tolist()
    )
    return f"<span>{name} = <table class='{'blank' if blank else ''}'>{body}</table></span>"


def _number(x: float) -> str:
    return html.escape(number_text(round(x, 4)))


def _choose(exercise: Choose, rng: np.random.Generator, lang: str) -> tuple[str, str]:
    said = _WORDS[lang]
    options = [exercise.options[k] for k in rng.permutation(len(exercise.options))]
    listed = "".join(f"<li>{html.escape(option.text[lang])}</li>" for option in options)
    why = "".join(
        f"<li>{said['right' if option.right else 'wrong']}. {html.escape(option.why[lang])}</li>" for option in options
    )
    question = f"<p>{html.escape(exercise.text[lang])} {said['choose']}</p><ol type='a'>{listed}</ol>"
    return question, f"<ol type='a'>{why}</ol>"
