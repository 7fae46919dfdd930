"""Exercises of chapters 8 to 14 that ask for a choice; the first three are the last three of the notes' six."""

from __future__ import annotations

from ...bilingual import words
from ..exercise import Choose, Option


def _option(right: bool, en: str, zh: str, why_en: str, why_zh: str) -> Option:
    return Option(words(en, zh), right, words(why_en, why_zh))


TWO_ROLES = Choose(
    id="two-roles",
    text=words(
        "In chapter eleven C's row of E has gradient zero, but C's column of U does not. Why?",
        "第 11 章里，E 中 C 那一行的梯度是零，U 中 C 那一列却不是。为什么？",
    ),
    options=(
        _option(True, "C was not looked up, but it was scored.", "C 没有被查，却被打了分。",
                "Every candidate is scored, whether it stands in the input or not.", "每个候选都要打分，不管输入里有没有它。"),
        _option(True, "With E and U tied, C's row would receive a gradient.", "若 E 与 U 共享，C 那一行就会有梯度。",
                "Then the share of the output's road is added to the same row.", "那时输出那条路的一份加到同一行上。"),
        _option(False, "C is the target, and targets have no gradient.", "C 是目标，目标没有梯度。",
                "The target has one: its probability less one.", "目标恰恰有梯度：概率减一。"),
        _option(False, "A gradient of zero means that C cannot be learnt.", "梯度为零说明 C 学不会。",
                "Its output column is learning already, and another text looks its row up.",
                "它的输出列已经在学；换一段文字，它的行也会被查到。"),
    ),
)  # fmt: skip

FROM_A_AND_V = Choose(
    id="from-a-and-v",
    text=words("You know A and V of one head. Which statements are right?", "知道了一个头的 A 与 V。哪些说法是对的？"),
    options=(
        _option(True, "The output Z of that head is known.",
                "也就知道了这个头的输出 Z。", "Z is their product.", "Z 就是两者之积。"),
        _option(False, "The next token is known, if it is chosen greedily.", "若用贪心，就知道下一个词元。",
                "Other heads, projections, residual connections, layers and the vocabulary scores lie between.",
                "中间还隔着别的头、投影、残差、其余各层和词表打分。"),
        _option(False, "The distribution of the next token is known.", "就知道下一个词元的分布。",
                "For the same reason.", "理由同上。"),
        _option(True, "Even the final distribution does not tell which token is drawn.",
                "即使知道最后的分布，也不知道会抽中哪个词元。",
                "A draw is not settled by its distribution.", "分布不决定一次抽签的结果。"),
    ),
)  # fmt: skip

LOSS_AND_ACCURACY = Choose(
    id="loss-and-accuracy",
    text=words("The loss fell in this step. What follows?", "这一步损失降了，由此能得出什么？"),
    options=(
        _option(False, "More answers are right than before.", "答对的比以前多。",
                "In chapter eleven the target became more probable and still is not the most probable.",
                "第 11 章里目标更可能了，却仍不是最可能的。"),
        _option(True, "The mean of minus ln p over what is scored is smaller.", "计分处 -ln p 的平均变小了。",
                "That is what the loss is.", "损失的定义就是它。"),
        _option(False, "No sentence of the batch got worse.", "批里没有哪一句变差。",
                "A mean can fall while one of its terms rises.", "平均下降，其中一项仍可上升。"),
        _option(False, "A step twice as long would have been better.", "步子加倍会更好。",
                "A step that is too long may raise the loss.", "步子太长，损失反而可能上升。"),
    ),
)  # fmt: skip

ORDER = Choose(
    id="order",
    text=words(
        "One layer of attention; two tokens before the last position are exchanged. Which statements are right?",
        "一层注意力，把末行之前的两个词元对调。哪些说法是对的？",
    ),
    options=(
        _option(False, "Without positions and mask, the output of the last row changes.",
                "没有位置信息、没有掩码：末行的输出会变。",
                "A weighted sum does not care in which order its terms stand.", "加权和不在乎各项的次序。"),
        _option(True, "Without positions and mask, the outputs of the two rows are exchanged.",
                "没有位置信息、没有掩码：那两行的输出跟着对调。",
                "Outputs are permuted as the inputs are.", "输出跟着输入同样重排。"),
        _option(True, "With a causal mask, what the two tokens read may change.", "有因果掩码：那两个词元读到的内容可能变。",
                "At their new places they may read other sets of rows.", "到了新位置，它们能读的行变了。"),
        _option(False, "With RoPE nothing changes, since it is relative.", "用 RoPE：什么都不变，因为它是相对的。",
                "The distances to the last row have changed.", "到末行的距离变了。"),
    ),
)  # fmt: skip

PRE_AND_POST = Choose(
    id="pre-and-post",
    text=words("Pre-LN and Post-LN: which statements are right?", "关于 Pre-LN 与 Post-LN，哪些是对的？"),
    options=(
        _option(True, "In Pre-LN the straight road of the residual connection is not normalised.",
                "Pre-LN 里，被加上的那条直路没有归一化。",
                "Only what enters the part is.", "归一化的只是进入子层的那一份。"),
        _option(False, "The model of 2017 is Pre-LN.", "2017 年的模型是 Pre-LN。",
                "It normalises after the sum.", "它在相加之后归一化。"),
        _option(False, "LayerNorm mixes positions, so it needs the mask.", "LayerNorm 混合各位置，所以也要掩码。",
                "It works within each row.", "它只在一行之内计算。"),
        _option(True, "The variance divides by d.", "方差除以 d。",
                "The population variance, with eps inside the root.", "用的是总体方差，eps 在根号里。"),
    ),
)  # fmt: skip

NO_EXPLANATION = Choose(
    id="no-explanation",
    text=words("A head gives a word the share 0.9. What may be said?", "某个头给一个词的份额是 0.9。可以说什么？"),
    options=(
        _option(False, "The answer depends mostly on that word.", "答案主要取决于这个词。",
                "A short value, another head or a later layer can undo it; take the word away and measure.",
                "内容向量短、别的头、后面的层都可能抵消；拿走它，量一量才知道。"),
        _option(True, "In that head's output this word's value has the coefficient 0.9.",
                "在这个头的输出里，这个词的内容的系数是 0.9。",
                "That is what the share means. How long the value is, it does not say.",
                "份额的意思就是这个；内容向量有多长，它没有说。"),
        _option(False, "The head has learnt what the word means.", "这个头学会了这个词的意思。",
                "Nothing that was computed says so.", "算出来的东西里没有哪一样这么说。"),
    ),
)  # fmt: skip
