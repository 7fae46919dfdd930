"""The clinic language: a small grammar of sentences in the manner of the notes' 患者服用华法林后出现黑便。

    sentence = subject, action, drug, ["三天"], "后", ["没有"], "出现", symptom, ["和", another symptom], "。"

``following`` below is the grammar, with the probability of each continuation in hundredths. The drug depends on the
subject, the symptom on action and drug: to predict it one must look back four to six words. The English twin has the
same sentences with the same probabilities, word for word (``ENGLISH``).

The sentences are examples of language. Their probabilities are invented and say nothing about medicine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType

from .language import Language
from .words import WordTokenizer

Shares = Mapping[str, int]

END = "<end>"
SENTENCE = ("患者", "服用", "华法林", "后", "出现", "黑便", "。")
"""The notes' own sentence, as the notes cut it."""

SUBJECTS: Shares = MappingProxyType({"患者": 70, "老人": 30})
ACTIONS: Shares = MappingProxyType({"服用": 75, "停用": 25})
DRUGS: Mapping[str, Shares] = MappingProxyType(
    {
        "患者": {"华法林": 40, "阿司匹林": 20, "二甲双胍": 20, "青霉素": 20},
        "老人": {"华法林": 20, "阿司匹林": 40, "二甲双胍": 30, "青霉素": 10},
    }
)
SYMPTOMS: Mapping[str, Shares] = MappingProxyType(
    {
        "华法林": {"黑便": 60, "头晕": 15, "恶心": 10, "皮疹": 5, "乏力": 5, "头痛": 5},
        "阿司匹林": {"黑便": 25, "头晕": 10, "恶心": 40, "皮疹": 5, "乏力": 10, "头痛": 10},
        "二甲双胍": {"黑便": 5, "头晕": 20, "恶心": 50, "皮疹": 5, "乏力": 15, "头痛": 5},
        "青霉素": {"黑便": 5, "头晕": 10, "恶心": 15, "皮疹": 60, "乏力": 5, "头痛": 5},
    }
)
"""After 服用, by drug."""
STOPPED: Shares = MappingProxyType({"黑便": 5, "头晕": 25, "恶心": 10, "皮疹": 5, "乏力": 25, "头痛": 30})
"""After 停用, whatever the drug."""

ENGLISH: Mapping[str, str] = MappingProxyType(
    {
        "患者": "The patient", "老人": "The old man", "服用": " took", "停用": " stopped",
        "华法林": " warfarin", "阿司匹林": " aspirin", "二甲双胍": " metformin", "青霉素": " penicillin",
        "三天": " for three days", "后": " and then", "没有": " never", "出现": " had",
        "黑便": " black stools", "头晕": " dizziness", "恶心": " nausea", "皮疹": " a rash", "乏力": " fatigue",
        "头痛": " a headache", "和": " and", "。": ".", END: END,
    }
)  # fmt: skip
"""Each word and its twin; spaces belong to the word that follows them."""


def following(prefix: Sequence[str]) -> dict[str, Fraction]:
    """The grammar: what may follow ``prefix`` (a beginning of a sentence), each with its probability; sums to 1.

    Empty after the end of a sentence.
    """
    last = prefix[-1] if prefix else ""
    if last == END:
        return {}
    if last == "和":
        # Another symptom than the first, in unchanged proportion.
        symptoms = {word: share for word, share in _symptoms(prefix).items() if word != prefix[-2]}
    else:
        symptoms = _next_slot(prefix, last)
    whole = sum(symptoms.values())
    return {word: Fraction(share, whole) for word, share in symptoms.items()}


def clinic(lang: str = "zh") -> Language:
    """The language in Chinese (``"zh"``) or its English twin (``"en"``), every sentence with its probability."""
    words = list(ENGLISH)
    texts = words if lang == "zh" else [ENGLISH[word] for word in words]
    return Language.of(following, words, WordTokenizer(texts, END))


def sentence(lang: str) -> tuple[str, ...]:
    """``SENTENCE`` in ``lang``."""
    return SENTENCE if lang == "zh" else tuple(ENGLISH[word] for word in SENTENCE)


def _next_slot(prefix: Sequence[str], last: str) -> Shares:
    if not prefix:
        return SUBJECTS
    if last in SUBJECTS:
        return ACTIONS
    if last in ACTIONS:
        return DRUGS[prefix[0]]
    if last in SYMPTOMS:
        return {"后": 80, "三天": 20}
    if last == "后":
        return {"出现": 75, "没有": 25}
    if last == "出现":
        return _symptoms(prefix)
    if last in STOPPED:
        return {"。": 100} if "和" in prefix else {"。": 70, "和": 30}
    return {{"三天": "后", "没有": "出现", "。": END}[last]: 100}


def _symptoms(prefix: Sequence[str]) -> Shares:
    return SYMPTOMS[prefix[2]] if prefix[1] == "服用" else STOPPED
