"""Tokenizers as subjects: told part by part, or made from an object whose public methods say what it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from ...errors import UserError
from ...generation import TextStream
from ...text.tokenizer import Tokenizer as OwnTokenizer
from ..law import Family

Ids: TypeAlias = Sequence[int]
Spans: TypeAlias = Sequence[tuple[int, int]]
Messages: TypeAlias = Sequence[Mapping[str, str]]
"""A conversation: each message has a ``role`` (system, user, assistant) and a ``content``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """How a conversation becomes ids. Where a way is None it is not offered.

    ``training`` gives all ids of a conversation, ``serving`` those from which a reply to it is generated. ``scored``
    gives the ids of a conversation and, for each, whether training predicts it: those of the assistant's turns.
    ``begin`` is the id of BOS where conversations begin with one.
    """

    training: Callable[[Messages], Ids]
    serving: Callable[[Messages], Ids] | None = None
    scored: Callable[[Messages], tuple[Ids, Sequence[bool]]] | None = None
    begin: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """A tokenizer under test. Where a part is None it is not offered.

    ``encode`` gives the ids of a text alone, no BOS or EOS; a text that it refuses with an error is left out. ``decode``
    gives their text. ``stream`` takes the ids one after another and gives text in parts, ``spans`` the characters
    ``(first, after the last)`` that each id covers. ``vocab_size`` N bounds the ids. ``special`` holds the control tokens,
    id by spelling. ``normalise`` is what the tokenizer says that it makes of a text first: None for a lossless one.
    ``content`` encodes what a user wrote, where that is not ``encode``. ``reference`` gives the ids that must come out.
    """

    family: ClassVar[Family] = Family.TOKENIZER
    name: str
    encode: Callable[[str], Ids]
    decode: Callable[[Ids], str]
    stream: Callable[[Ids], Iterable[str]] | None = None
    spans: Callable[[str], Spans] | None = None
    vocab_size: int | None = None
    special: Mapping[str, int] = field(default_factory=dict)
    normalise: Callable[[str], str] | None = None
    content: Callable[[str], Ids] | None = None
    reference: Callable[[str], Ids] | None = None
    chat: Chat | None = None


@runtime_checkable
class LibraryTokenizer(Protocol):
    """What is used of a ``tokenizers.Tokenizer``."""

    encode_special_tokens: bool

    def encode(self, sequence: str, *, add_special_tokens: bool = True) -> Any: ...
    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str: ...
    def get_vocab_size(self, with_added_tokens: bool = True) -> int: ...
    def get_added_tokens_decoder(self) -> Mapping[int, Any]: ...
    def to_str(self) -> str: ...


@runtime_checkable
class HubTokenizer(Protocol):
    """What is used of a tokenizer of ``transformers``."""

    all_special_tokens: list[str]
    bos_token_id: int | None

    def convert_tokens_to_ids(self, tokens: str) -> int: ...
    def encode(self, text: str, **settings: Any) -> list[int]: ...
    def decode(self, token_ids: Sequence[int], **settings: Any) -> str: ...
    def apply_chat_template(self, conversation: Any, **settings: Any) -> Any: ...
    def __len__(self) -> int: ...


def tokenizer_subject(tokenizer: Any, name: str | None = None) -> Tokenizer:
    """The subject for a ``Tokenizer`` of ours, of ``tokenizers`` or of ``transformers``; raises ``UserError`` for another."""
    name = name or type(tokenizer).__name__
    match tokenizer:
        case Tokenizer():
            return tokenizer
        case OwnTokenizer():
            return own_tokenizer(tokenizer, name)
        case HubTokenizer():
            return hub_tokenizer(tokenizer, name)
        case LibraryTokenizer():
            return library_tokenizer(tokenizer, name)
        case _:
            raise UserError(
                f"A {type(tokenizer).__name__} is no tokenizer that is known here.",
                "It is none of glassformer, tokenizers or transformers.",
                "Say how it encodes and decodes: glassformer.laws.subjects.text.Tokenizer(name=..., encode=..., decode=...).",
            )


def own_tokenizer(tokenizer: OwnTokenizer, name: str) -> Tokenizer:
    """A tokenizer of this project: lossless, and a control token is never found in a text."""

    def stream(ids: Ids) -> Iterable[str]:
        text = TextStream(tokenizer.bytes_of)
        yield from (text.feed(id) for id in ids)
        yield text.end()

    return Tokenizer(
        name=name,
        encode=lambda text: tokenizer.ids(text).tolist(),
        decode=tokenizer.decode,
        stream=stream,
        spans=lambda text: [(a, b) for a, b in tokenizer.encode(text).spans.tolist()],
        vocab_size=tokenizer.vocab_size,
        special={tokenizer.texts[id]: id for id in tokenizer.specials if id is not None},
    )


LOSSY = ("WordPiece", "WordLevel")
"""Models of ``tokenizers`` whose vocabulary does not hold every text, and whose pieces are joined by rule."""

CHANGING = ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "CharDelimiterSplit", "Metaspace")
"""Pre-tokenizers that leave white space out, or write another character in its place."""


def library_tokenizer(tokenizer: LibraryTokenizer, name: str) -> Tokenizer:
    """A ``tokenizers.Tokenizer``; what it normalises is read from its own description of itself."""

    def encode(text: str) -> Ids:
        return tokenizer.encode(text, add_special_tokens=False).ids

    def decode(ids: Ids) -> str:
        return tokenizer.decode(list(ids), skip_special_tokens=True)

    special = {str(token.content): id for id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    described = json.loads(tokenizer.to_str())
    return Tokenizer(
        name=name,
        encode=known(encode, described),
        decode=decode,
        spans=lambda text: tokenizer.encode(text, add_special_tokens=False).offsets,
        vocab_size=tokenizer.get_vocab_size(),
        special=special,
        normalise=(lambda text: decode(encode(text))) if changes_text(described) else None,
        content=None if tokenizer.encode_special_tokens else known(_split(tokenizer), described),
    )


def _split(tokenizer: LibraryTokenizer) -> Callable[[str], Ids]:
    """The documented way to encode what a user wrote: as if the control tokens had no spelling."""

    def encode(text: str) -> Ids:
        tokenizer.encode_special_tokens = True
        try:
            return tokenizer.encode(text, add_special_tokens=False).ids
        finally:
            tokenizer.encode_special_tokens = False

    return encode


def changes_text(described: Mapping[str, Any]) -> bool:
    """Whether a ``tokenizer.json`` declares that it changes a text before or after its model sees it."""
    before = _steps(described.get("pre_tokenizer"), "pretokenizers")
    return (
        described.get("normalizer") is not None
        or described["model"]["type"] in LOSSY
        or any(step["type"] in CHANGING or step.get("add_prefix_space") for step in before)
        or any(token.get("lstrip") or token.get("rstrip") for token in described.get("added_tokens", ()))
    )


def _steps(part: Any, inner: str) -> list[Mapping[str, Any]]:
    if not part:
        return []
    return [step for each in part[inner] for step in _steps(each, inner)] if part["type"] == "Sequence" else [part]


def known(encode: Callable[[str], Ids], described: Mapping[str, Any]) -> Callable[[str], Ids]:
    """``encode``, which refuses a text with something in it that the vocabulary does not hold."""
    model = described["model"]
    unknown = model.get("unk_id") if model["type"] == "Unigram" else _id_of(model.get("unk_token"), described)

    def encoded(text: str) -> Ids:
        ids = encode(text)
        if unknown is not None and unknown in ids:
            raise ValueError("the vocabulary does not hold this text")
        return ids

    # A BPE without a token for the unknown leaves it out in silence: that is a loss, and it is measured.
    return encoded


def _id_of(token: str | None, described: Mapping[str, Any]) -> int | None:
    vocabulary = described["model"].get("vocab")
    if token is None or not isinstance(vocabulary, Mapping):
        return None
    added = {each["content"]: each["id"] for each in described.get("added_tokens", ())}
    return added.get(token, vocabulary.get(token))


def hub_tokenizer(tokenizer: HubTokenizer, name: str) -> Tokenizer:
    """A tokenizer of ``transformers``: by its library tokenizer where it has one, its chat template where it has one."""
    backend = getattr(tokenizer, "backend_tokenizer", None)

    def encode(text: str) -> Ids:
        return tokenizer.encode(text, add_special_tokens=False)

    def content(text: str) -> Ids:
        return tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)

    def decode(ids: Ids) -> str:
        return tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)

    inner = library_tokenizer(backend, name) if isinstance(backend, LibraryTokenizer) else None
    described = json.loads(backend.to_str()) if isinstance(backend, LibraryTokenizer) else None
    lossless = inner is not None and inner.normalise is None
    return Tokenizer(
        name=name,
        encode=encode if described is None else known(encode, described),
        decode=decode,
        spans=None if inner is None else inner.spans,
        vocab_size=len(tokenizer),
        special={token: tokenizer.convert_tokens_to_ids(token) for token in tokenizer.all_special_tokens},
        normalise=None if lossless else lambda text: decode(encode(text)),
        content=content if described is None else known(content, described),
        chat=_chat(tokenizer, template) if (template := str(getattr(tokenizer, "chat_template", None) or "")) else None,
    )


def _chat(tokenizer: HubTokenizer, template: str) -> Chat:
    def ids(messages: Messages, *, reply: bool) -> Ids:
        conversation = [dict(message) for message in messages]
        found = tokenizer.apply_chat_template(
            conversation, tokenize=True, add_generation_prompt=reply, return_dict=False
        )
        return list(found)

    return Chat(
        training=lambda messages: ids(messages, reply=False),
        serving=lambda messages: ids(messages, reply=True),
        # Some name the mark of every turn their BOS, and their templates do not begin with it.
        begin=tokenizer.bos_token_id if "bos_token" in template else None,
    )
