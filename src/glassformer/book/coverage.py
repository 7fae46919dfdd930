"""What the book promises, section by section; the builder refuses a book in which a promise has no place."""

from __future__ import annotations

from dataclasses import dataclass

from ..bilingual import Words, words


@dataclass(frozen=True, slots=True)
class Promise:
    """``id`` is what a block's ``covers`` names; ``waits`` says what a promise that is kept only in part is waiting for."""

    id: str
    text: Words
    waits: Words | None = None


def _promise(id: str, en: str, zh: str, waits: Words | None = None) -> Promise:
    return Promise(id, words(en, zh), waits)


_ENCODERS = words("encoders and encoder-decoders of our own", "本项目自己的编码器与编码器—解码器")
_TRAINED = words("experiments on larger trained models", "更大的已训练模型上的实验")

PROMISES = (
    _promise(
        "front", "formulas can be copied, all works offline, every statement has a status, every number a source",
        "公式可复制，全书离线可用，每句话有身份，每个数有来处",
    ),
    _promise("1.1", "a distribution over the whole vocabulary", "整个词表上的概率分布"),
    _promise("1.2", "one forward pass, two paths after it", "一次前向，其后两条路"),
    _promise("1.3", "one sentence, cut into seven tokens", "一句话，切成七个词元"),
    _promise("2.1", "lookup is a one-hot row times E", "查表即 one-hot 行乘 E"),
    _promise("2.2", "a token at two places has two rows", "同一词元在两处有两行"),
    _promise("2.3", "E learns, and repeated tokens add up", "E 要训练，重复的词元梯度相加"),
    _promise("3.1", "parameters and what is computed from them", "参数与由参数算出的量"),
    _promise("3.2", "dimensions, and rows throughout", "维度表与行向量"),
    _promise("3.3", "four steps kept apart", "四步分开"),
    _promise("4.1", "targets are shifted by one", "目标错开一位"),
    _promise("4.2", "labels in the batch cannot be seen", "批里的答案看不见"),
    _promise("4.3", "teacher forcing and free running agree where they should", "教师强制与自由生成在该一致处一致"),
    _promise("5.1", "a function of one position sees no context", "逐位置的函数看不见上下文"),
    _promise("5.2", "a bilinear form of rank at most d_k, not symmetric", "秩至多 d_k、不必对称的双线性形式"),
    _promise("5.3", "doubling W_V leaves A alone", "W_V 加倍而 A 不变"),
    _promise("6.1", "the dot product, term by term", "点积逐项相加"),
    _promise("6.2", "softmax and what follows from it", "Softmax 及其推论"),
    _promise("6.3", "a whole computation by hand, and the hull", "完整手算与凸包"),
    _promise("6.4", "A V entry by entry", "A V 逐元素"),
    _promise("6.5", "the same token after two prefixes", "两个前缀之后的同一词元"),
    _promise("7.1", "the variance of a dot product is d_k", "点积的方差是 d_k"),
    _promise("7.2", "which step needs which assumption", "哪一步用到哪个条件"),
    _promise("7.3", "the derivative of softmax, and saturation", "Softmax 的导数与饱和"),
    _promise("7.4", "the allowed set; the future weighs exactly zero", "允许集合；未来的权重恰为零"),
    _promise("7.5", "nothing leaks through many layers", "多层也不泄漏"),
    _promise("8.1", "heads side by side, back to d", "多头并列，回到 d"),
    _promise("8.2", "the feed-forward network, position by position", "逐位置的前馈网络"),
    _promise("8.3", "the residual connection and its derivative", "残差及其导数"),
    _promise("8.4", "LayerNorm as it is computed", "LayerNorm 的实际计算"),
    _promise("8.5", "one block, exactly", "一个明确的 Block"),
    _promise("8.6", "order: permutations and rotations", "次序：置换与旋转"),
    _promise("8.7", "three architectures", "三类架构", _ENCODERS),
    _promise("9.1", "from rows to probabilities of tokens", "从隐藏行到词元概率"),
    _promise("9.2", "from likelihood to cross-entropy", "从似然到交叉熵"),
    _promise("9.3", "everything is trained together", "一起训练"),
    _promise("9.4", "tied weights add two gradients", "共享权重：两份梯度相加"),
    _promise("10.1", "why -g goes down", "为什么 -g 是下降方向"),
    _promise("10.2", "what a gradient of a matrix is", "矩阵的梯度是什么"),
    _promise("10.3", "back to the logits", "回到 logits"),
    _promise("10.4", "back to the hidden row", "回到隐藏行"),
    _promise("10.5", "through residual and mixing", "穿过残差与混合"),
    _promise("10.6", "through the softmax of attention", "穿过注意力 Softmax"),
    _promise("10.7", "back to W_Q, W_K, W_V and X", "回到 W_Q、W_K、W_V 与 X"),
    _promise("10.8", "feed-forward network and LayerNorm", "FFN 与 LayerNorm"),
    _promise("10.9", "back to the embedding", "回到嵌入"),
    _promise("11.1", "24 parameters, all of them given", "24 个参数，全部给定"),
    _promise("11.2", "lookup, projections, mask", "查表、投影与掩码"),
    _promise("11.3", "residual, scores, loss", "残差、词表分数、损失"),
    _promise("11.4", "back to the scores of attention", "回到注意力分数"),
    _promise("11.5", "back to every parameter", "回到每个参数"),
    _promise("11.6", "one joint step, and what it changed", "一次联合更新与它改变了什么"),
    _promise("11.7", "how the numbers are checked", "数字怎样核验"),
    _promise("letters", "a is not A, h_2 is no position", "a 不是 A，h_2 不是位置"),
    _promise("12.1", "the last row predicts", "最后一行作预测"),
    _promise("12.2", "choosing a token: greedy, temperature, top-k, top-p", "选词元：贪心、温度、top-k、top-p"),
    _promise("12.3", "one walk with the sentence", "用这句话走一轮"),
    _promise("12.4", "what a cache reuses", "缓存复用什么"),
    _promise("12.5", "when to stop", "何时停止"),
    _promise("13.1", "attention is not linear", "注意力不是线性映射"),
    _promise("13.2", "where useful meaning comes from", "有用的语义从哪里来", _TRAINED),
    _promise("13.3", "an attention map is no causal explanation", "注意力图不是因果解释"),
    _promise("13.4", "shortcuts", "捷径"),
    _promise("14.1", "sixteen questions and where they are answered", "十六个问题与回答之处"),
    _promise("14.2", "three kinds of learning", "三种“学习”"),
    _promise("14.3", "exercises", "练习"),
    _promise("14.4", "sources and limits", "来源与范围"),
)  # fmt: skip
