"""Faults of tokenizers and chat templates, each one changed line of ``small_tokenizer.py``."""

from __future__ import annotations

from mutants import Mutant

FILE = "small_tokenizer.py"


def _mutant(name: str, entry: int | None, source: str, old: str, new: str, law: str) -> Mutant:
    return Mutant(name=name, entry=entry, source=source, file=FILE, old=old, new=new, law=law)


MUTANTS: list[Mutant] = [
    _mutant(
        "one leading space is stripped", 71, "transformers#46491",
        "for word in re.finditer(CUT, text):", "for word in re.finditer(CUT, text.removeprefix(' ')):",
        "tokenizer.round-trip",
    ),
    _mutant(
        "texts are normalised, and nothing says so", 71, "sentencepiece#185",
        'raw, at = word.group().encode("utf-8"), 0',
        'raw, at = __import__("unicodedata").normalize("NFC", word.group()).encode(), 0',
        "tokenizer.round-trip",
    ),
    _mutant(
        "a space is put between words", 71, "sentencepiece#329",
        'raw = b"".join(self.pieces[id] for id in ids if id < len(self.pieces))',
        'raw = b"".join(self.pieces[id] for id in ids if id < len(self.pieces)).lstrip(b" ")',
        "tokenizer.concatenation",
    ),
    _mutant(
        "tokens are decoded one by one", 72, "exo#1691",
        "yield decoder.decode(self.pieces[id] if id < len(self.pieces) else b\"\")", "yield self.decode([id])",
        "tokenizer.stream",
    ),
    _mutant(
        "the end of the stream is dropped after a cut", 72, "mlc-llm#2978",
        'decoder = codecs.getincrementaldecoder("utf-8")("replace")',
        'decoder = codecs.getincrementaldecoder("utf-8")("strict")',
        "tokenizer.stream",
    ),
    _mutant(
        "a completed character is dropped at the edge of a window", 72, "vllm-mlx#109",
        "        for id in ids:\n            yield",
        "        for k, id in enumerate(ids):\n            if k % 64 == 63: decoder.reset()\n            yield",
        "tokenizer.stream",
    ),
    _mutant("another pattern cuts words", 73, "llama.cpp#6920", r'CUT = r"\w+|\s+|[^\w\s]+"', r'CUT = r"\s?\w+|\s+|[^\w\s]+"',
            "tokenizer.reference"),
    _mutant("spans count bytes", 72, "tokenizers by design", "borders = [word.start() + k for k, c in enumerate(word.group())",
            "borders = [len(text[:word.start()].encode()) + k for k, c in enumerate(word.group())", "tokenizer.spans"),
    _mutant("spans end one character early", None, "",
            "borders[at + len(piece) - 1] + 1)", "borders[at + len(piece) - 1])", "tokenizer.spans"),
    _mutant("an id is one too large", None, "", "{piece: id for id, piece in enumerate(self.pieces)}",
            "{piece: id + 9 for id, piece in enumerate(self.pieces)}", "tokenizer.ids"),
    _mutant(
        "content becomes control tokens", None, "prompt injection",
        "        found = []\n        for word in re.finditer(CUT, text):",
        "        found = [(self.control[text], (0, len(text)))] if text in self.control else []\n"
        "        for word in re.finditer(CUT, '' if found else text):",
        "control-tokens.content",
    ),
    _mutant(
        "a turn that spells a control token has one more", None, "prompt injection",
        "body = [*self.encode(message[\"content\"]), self.control[\"<|end|>\"]]",
        "content = message['content']\n"
        "        body = [*self.encode(content), *[self.control['<|end|>']] * (1 + content.count('<|end|>'))]",
        "control-tokens.count",
    ),
    _mutant("a second BOS in serving", 59, "unsloth.ai/blog/gemma-bugs", "        ids = self.training(messages)\n",
            "        ids = [self.control[\"<|begin|>\"], *self.training(messages)]\n", "chat-ids.begin"),
    _mutant("serving strips what was said", 71, "transformers#47487", "        ids = self.training(messages)\n",
            "        ids = self.training([{**m, 'content': m['content'].strip()} for m in messages])\n", "chat-ids.same"),
    _mutant("the mask runs to the end of the conversation", 75, "transformers#47325",
            "flags = [*ids, *some], [*flags, *predicted]",
            "flags = [*ids, *some], [*flags, *([True] * len(some) if True in flags else predicted)]", "chat-ids.scored"),
    _mutant("nothing is predicted", 76, "trl#4201", '[message["role"] == "assistant"] * len(body)', "[False] * len(body)",
            "chat-ids.scored"),
    _mutant(
        "the assistant's turns are looked for by the ids of their text", 77, "trl#598",
        "            some, predicted = self.turn(message)",
        "            some, predicted = self.turn(message)\n"
        "            alone = self.encode(' ' + message['content'])\n"
        "            predicted = [f and any(some[i:i + len(alone)] == alone for i in range(len(some))) for f in predicted]",
        "chat-ids.scored",
    ),
    _mutant("the end of a turn is not predicted", 36, "torchtune#949",
            '[message["role"] == "assistant"] * len(body)', '[message["role"] == "assistant"] * (len(body) - 1) + [False]',
            "chat-ids.end-of-turn"),
]  # fmt: skip

NOT_EXPRESSED: dict[int, str] = {
    78: "weights made anew after loading: the law of loading, whose subject is a folder, not a tokenizer",
}
