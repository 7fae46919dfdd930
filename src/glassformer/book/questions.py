"""The sixteen questions from which the notes grew, in other words, with short answers and the places of the long ones."""

from __future__ import annotations

from dataclasses import dataclass

from ..bilingual import Words, words


@dataclass(frozen=True, slots=True)
class Question:
    """``sections`` are where the long answer stands."""

    text: Words
    answer: Words
    sections: tuple[str, ...]


def _asked(en: str, zh: str, answer_en: str, answer_zh: str, *sections: str) -> Question:
    return Question(words(en, zh), words(answer_en, answer_zh), sections)


QUESTIONS = (
    _asked("What is a Transformer made of, in terms I know?", "用我会的知识说，Transformer 由什么组成？",
           "Lookups, matrix products, one softmax, sums and a nonlinearity, layer after layer.",
           "查表、矩阵乘法、Softmax、相加和一个非线性，一层接一层。", "1.1", "1.2", "8.5"),
    _asked("How does a dot product become a share?", "点积怎样变成份额？",
           "Each score is exponentiated and divided by the sum of its row.",
           "分数取指数，再除以整行之和。", "6.1", "6.2"),
    _asked("Why is the variance of 64 products 64 and the deviation 8?", "64 项的方差为什么是 64，标准差是 8？",
           "Under independence, zero mean and unit variance the variances add up.",
           "在独立、零均值、单位方差的假设下，方差相加。", "7.1"),
    _asked("Why may the variance be the mean of a square?", "方差为什么能写成平方的均值？",
           "Only where the mean is zero.", "仅当均值为零。", "7.2"),
    _asked("What was d_k again?", "d_k 是什么来着？",
           "How many pairs of coordinates a dot product multiplies; it has nothing to do with the length of the text.",
           "一次点积相乘的坐标对数，与文本长度无关。", "3.2"),
    _asked("Does this step compute W_Q or q?", "这一步算的是 W_Q 还是 q？",
           "q. Parameters are changed by the optimizer alone.", "算的是 q；只有优化器改变参数。", "3.1", "3.3"),
    _asked("Why multiply by V as well?", "为什么还要乘 V？",
           "Shares say how much to read of each row; V says what is read.",
           "份额说每行读多少，V 说读到什么。", "5.1", "6.4"),
    _asked("What is so special about it?", "它高级在哪里？",
           "The mixing matrix depends on the input although the parameters are fixed.",
           "参数不变，混合矩阵却随输入而变。", "13.1"),
    _asked("What is z good for?", "z 有什么意义？",
           "A row that depends on what came before, for later layers to use.",
           "一行依赖前文的特征，供后面的层使用。", "6.5"),
    _asked("Is the input a sentence, and is this training or output?", "输入是一句话吗，现在是训练还是输出？",
           "The same forward pass serves both; they part after the probabilities.",
           "两者共用同一次前向，概率之后才分开。", "1.2", "4.3"),
    _asked("Why is the last position enough?", "为什么只用最后一个位置？",
           "It alone predicts what is not yet written; earlier rows live on in its keys and values.",
           "只有它预测还没写出的内容；前面的行活在它读到的键和值里。", "12.1", "12.4"),
    _asked("Without the mask, does every word see the others?", "没有 M，每个词都会联系别的词吗？",
           "Yes. The mask is what keeps the future out, in every layer.",
           "会。正是掩码在每一层挡住未来。", "7.4", "7.5"),
    _asked("Show training and output on the sentence.", "用那句话展示训练和输出。",
           "Targets are shifted by one; output repeats one prediction.",
           "目标错开一位；输出是一次预测的重复。", "4.1", "12.3"),
    _asked("What are loss, gradient and update?", "损失、梯度、参数更新是什么？",
           "A number, how it moves with each parameter, and one step against that.",
           "一个数，它随每个参数怎样变，以及逆着它走一步。", "10.1", "11.6"),
    _asked("Is there not a prediction function missing?", "还缺一个预测函数吧？",
           "Yes: the last hidden row times U, then softmax over the vocabulary.",
           "是的：最后的隐藏行乘 U，再对词表做 Softmax。", "9.1"),
    _asked("Is the output layer trained on its own?", "输出层单独训练吗？",
           "No. All parameters take one joint step from the same gradients.",
           "不。全部参数用同一组梯度联合走一步。", "9.3", "10.9"),
)  # fmt: skip
