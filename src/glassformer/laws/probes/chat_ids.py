"""Training ids = serving ids: a reply is generated after exactly what it was trained after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from ...bilingual import words
from ..law import Family, Law, Probe
from ..subjects.text import Chat, Messages, Tokenizer
from ..verdict import Finding, NotApplicable, NotSupported
from .tokenizer import counted

CONVERSATIONS: tuple[Messages, ...] = (
    ({"role": "user", "content": "apple"}, {"role": "assistant", "content": "banana"}),
    ({"role": "user", "content": "apple"}, {"role": "assistant", "content": "x"},
     {"role": "user", "content": "grape"}, {"role": "assistant", "content": "melon cherry"}),
    ({"role": "user", "content": "apple\n"}, {"role": "assistant", "content": "banana  "}),
    ({"role": "user", "content": "汉字"}, {"role": "assistant", "content": "é😀"}),
)  # fmt: skip


def _chat(subject: Tokenizer) -> Chat:
    if subject.chat is None:
        raise NotSupported("no chat template was told", "未给出对话模板")
    return subject.chat


def same(subject: Tokenizer) -> Finding:
    """The ids before a reply are in training what they are in serving."""
    chat = _chat(subject)
    if chat.serving is None:
        raise NotSupported("only one way from a conversation to ids was told", "只给出一种由对话到编号的途径")
    wrong = []
    for messages in CONVERSATIONS:
        whole = [int(id) for id in chat.training(messages)]
        prompt = [int(id) for id in chat.serving(messages[:-1])]
        if whole[: len(prompt)] != prompt:
            at = next((i for i, (a, b) in enumerate(zip(whole, prompt, strict=False)) if a != b), len(whole))
            wrong.append(
                {"messages": [dict(m) for m in messages], "first_difference": at, "training": whole[: at + 1][-9:],
                 "serving": prompt[: at + 1][-9:]}
            )  # fmt: skip
    return counted(wrong, conversations=len(CONVERSATIONS))


def begin(subject: Tokenizer) -> Finding:
    """One BOS, at the beginning, in training and in serving."""
    chat = _chat(subject)
    if chat.begin is None:
        raise NotApplicable("conversations have no BOS here", "此处对话没有 BOS")
    ways = {"training": chat.training} | ({} if chat.serving is None else {"serving": chat.serving})
    wrong = []
    for name, way in ways.items():
        for messages in CONVERSATIONS:
            ids = [int(id) for id in way(messages[:-1] if name == "serving" else messages)]
            if ids[:1] != [chat.begin] or ids.count(chat.begin) != 1:
                wrong.append({"way": name, "begin": chat.begin, "count": ids.count(chat.begin), "ids": ids[:8]})
    return counted(wrong)


def scored(subject: Tokenizer) -> Finding:
    """What training predicts of a conversation: each turn of the assistant, to its end, and of others nothing."""
    chat = _chat(subject)
    if chat.scored is None:
        raise NotSupported("no mask of the assistant's turns was told", "未给出助手回合的掩码")
    wrong = []
    for messages in CONVERSATIONS:
        ids, flags = chat.scored(messages)
        turns = _turns(subject, ids, flags)
        replies = [message["content"] for message in messages if message["role"] == "assistant"]
        others = [message["content"].strip() for message in messages if message["role"] != "assistant"]
        good = len(turns) == len(replies) and all(
            # A template may strip the spaces around a reply, and put its own marks there.
            reply.strip() in turn and not any(other in turn for other in others)
            for reply, turn in zip(replies, turns, strict=False)
        )
        if not good:
            wrong.append({"messages": [dict(m) for m in messages], "predicted": [ascii(turn) for turn in turns]})
    return counted(wrong, conversations=len(CONVERSATIONS))


def _turns(subject: Tokenizer, ids: Sequence[int], flags: Sequence[bool]) -> list[str]:
    """The text of each run of flagged ids."""
    runs = groupby(zip(ids, flags, strict=True), key=lambda pair: bool(pair[1]))
    return [subject.decode([int(id) for id, _ in run]) for flagged, run in runs if flagged]


def end_of_turn(subject: Tokenizer) -> Finding:
    """Each turn that is predicted is predicted to its end: the control token that ends it is part of it."""
    chat = _chat(subject)
    if chat.scored is None or not subject.special:
        raise NotSupported("no mask of the assistant's turns was told", "未给出助手回合的掩码")
    control = set(subject.special.values())
    wrong = []
    for messages in CONVERSATIONS:
        ids, flags = ([*each] for each in chat.scored(messages))
        for at in range(len(ids)):
            last = flags[at] and (at + 1 == len(ids) or not flags[at + 1])
            if last and int(ids[at]) not in control and at + 1 < len(ids) and int(ids[at + 1]) in control:
                wrong.append({"messages": [dict(m) for m in messages], "unpredicted_id": int(ids[at + 1])})
    return counted(wrong)


def _probe(name: str, en: str, zh: str, run: Callable[[Tokenizer], Finding]) -> Probe:
    return Probe(id=f"chat-ids.{name}", does=words(en, zh), run=run, family=Family.TOKENIZER, fast=True)


CHAT_IDS = Law(
    id="chat-ids",
    statement=words(
        "A conversation has the same ids in training and in serving, and exactly one BOS.",
        "同一对话在训练与服务时编号相同，且恰有一个 BOS。",
    ),
    formula=r"\mathrm{serve}(m_{1:k}) = \mathrm{train}(m_{1:k+1})_{1:|\mathrm{serve}(m_{1:k})|}",
    conditions=words("A tokenizer with a chat template.", "有对话模板的分词器。"),
    why=words(
        "A second BOS or a missing space puts every reply after a prompt that training never showed.",
        "多一个 BOS 或少一个空格，就让每次回复都接在训练中从未见过的提示之后。",
    ),
    chapter="12.1",
    probes=(
        _probe("same", "what stands before a reply", "回复之前的内容", same),
        _probe("begin", "one BOS", "恰有一个 BOS", begin),
        _probe("scored", "the assistant's turns alone are predicted", "只预测助手的回合", scored),
        _probe("end-of-turn", "the end of a turn is predicted", "回合的结束也被预测", end_of_turn),
    ),
)
