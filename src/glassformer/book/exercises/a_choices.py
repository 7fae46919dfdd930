"""Statements to choose among, chapters 1 to 7; ``SHIFT_AND_SCALE`` and ``NO_PEEKING`` are two of the notes' six exercises."""

from __future__ import annotations

from ...bilingual import words
from ..exercise import Choose, Option


def _option(right: bool, en: str, zh: str, why_en: str, why_zh: str) -> Option:
    return Option(words(en, zh), right, words(why_en, why_zh))


DISTRIBUTION_CHOICE = Choose(
    id="what-comes-out",
    text=words(
        "One forward pass over a prefix is finished. What has the model computed for the next token?",
        "对一段前缀完成一次前向计算后，关于下一个词元，模型算出了什么？",
    ),
    options=(
        _option(
            True,
            "a probability for every token of the vocabulary",
            "词表里每个词元的概率",
            "All of them are positive and they sum to 1.",
            "全部为正，总和为一。",
        ),
        _option(
            False,
            "one token",
            "一个词元",
            "Choosing a token is a further step, and only generation takes it.",
            "选词元是后面的一步，而且只有生成才走这一步。",
        ),
        _option(
            False,
            "probabilities of the tokens that occur in the prefix",
            "前缀里出现过的词元的概率",
            "Tokens that never occurred in the prefix have their own score and probability.",
            "前缀里没有的词元同样有自己的分数和概率。",
        ),
        _option(
            False,
            "new parameters",
            "新的参数",
            "A forward pass changes no parameter; only an optimizer does.",
            "前向计算不改任何参数；改参数的是优化器。",
        ),
    ),
)

ID_DISTANCE = Choose(
    id="id-distance",
    text=words(
        "The ids of two tokens are 17 and 92. What follows from their difference, 75?",
        "两个词元的编号是 17 和 92。由它们的差 75 能推出什么？",
    ),
    options=(
        _option(
            False,
            "that their meanings lie far apart",
            "两个词意思相距很远",
            "Numbering the vocabulary anew changes the difference and no meaning.",
            "把词表重新编号，差就变了，意思并没有变。",
        ),
        _option(
            False,
            "that their vectors lie far apart",
            "两个向量相距很远",
            "The two rows of E are trained numbers; the row number says nothing about what stands in it.",
            "E 的两行是训练出来的数，行号不决定行里写着什么。",
        ),
        _option(
            True,
            "nothing beyond: they are different rows of E",
            "除了“它们是 E 的不同行”，什么也推不出",
            "An id says which row to copy.",
            "编号只说明照抄哪一行。",
        ),
    ),
)

WHAT_IS_UPDATED = Choose(
    id="what-is-updated",
    text=words(
        "All parameters are trained. Which of these does the optimizer change directly?",
        "全部参数都参加训练。优化器直接修改下面哪些？",
    ),
    options=(
        _option(
            True,
            "W_Q",
            "W_Q",
            "A parameter: kept from one forward pass to the next.",
            "参数：从一次前向保留到下一次前向。",
        ),
        _option(
            False,
            "Q",
            "Q",
            "Made from this input and thrown away; the next forward pass makes it anew.",
            "由这次输入算出，用完即弃，下次前向重新算。",
        ),
        _option(
            False,
            "A",
            "A",
            "It has a gradient, and yet no optimizer touches it: it changes when parameters have changed.",
            "它有梯度，但优化器不碰它；参数变了，它才会变。",
        ),
        _option(True, "E", "E", "Its rows are trained like any other parameter.", "它的各行与其他参数一样要训练。"),
        _option(False, "the ids t", "编号 t", "Data: nothing is differentiated by them.", "数据：不对它们求导。"),
    ),
)

WHOSE_TARGET = Choose(
    id="whose-target",
    text=words(
        "In 患者 服用 华法林 后 出现 黑便 。, which row is trained to predict 黑便?",
        "在“患者 服用 华法林 后 出现 黑便 。”中，哪一行的训练目标是“黑便”？",
    ),
    options=(
        _option(True, "the row of 出现", "“出现”那一行", "Row 5 predicts token 6.", "第 5 行预测第 6 个词元。"),
        _option(
            False,
            "the row of 黑便",
            "“黑便”那一行",
            "That row has read 黑便 already; its target is the full stop.",
            "那一行已经读到“黑便”，它的目标是句号。",
        ),
        _option(
            False,
            "the row of the full stop",
            "句号那一行",
            "It has no target here, unless a token for the end of the text has been added.",
            "除非另外添加结束词元，这一行在这里没有目标。",
        ),
        _option(
            False,
            "the last row, whatever stands there",
            "无论是什么，总是最后一行",
            "In training every row but the last has a target of its own.",
            "训练时，除最后一行外，每一行都有自己的目标。",
        ),
    ),
)

SAME_PROBABILITIES = Choose(
    id="same-probabilities",
    text=words(
        "Training and generation meet the same prefix. Which of these can make their probabilities differ?",
        "训练和生成遇到同一段前缀。下面哪些会让两者的概率不同？",
    ),
    options=(
        _option(
            True, "dropout is on in training", "训练时开着 dropout", "It multiplies by random zeros.", "它随机乘零。"
        ),
        _option(
            True,
            "other parameters",
            "参数不同",
            "Every number but the ids is computed from them.",
            "除编号外，每个数都由参数算出。",
        ),
        _option(
            False,
            "the targets are known in training",
            "训练时知道目标",
            "They enter the loss, after the probabilities.",
            "目标在概率算完之后才进入损失。",
        ),
        _option(
            False,
            "the sentence goes on in training",
            "训练时句子后面还有内容",
            "No row can read what follows it.",
            "任何一行都读不到它后面的内容。",
        ),
    ),
)

SHARED_PROJECTION = Choose(
    id="shared-projection",
    text=words("W_Q and W_K are forced to be one matrix W. What follows?", "强迫 W_Q 与 W_K 是同一个矩阵 W，会怎样？"),
    options=(
        _option(
            True,
            "without a mask, position i scores j as j scores i",
            "没有掩码时，i 对 j 的分数等于 j 对 i 的分数",
            "W times its transpose is symmetric.",
            "W 乘自己的转置是对称矩阵。",
        ),
        _option(
            True,
            "no row can score itself below zero",
            "任何一行给自己的分数都不会为负",
            "That score is a squared length, up to the divisor.",
            "那个分数是长度的平方，至多再除以一个正数。",
        ),
        _option(
            False,
            "the coefficients A become symmetric",
            "混合系数 A 也变得对称",
            "Softmax divides each row by its own sum.",
            "Softmax 让每一行除以自己的和。",
        ),
        _option(
            False,
            "the model is wrong",
            "模型是错的",
            "It is another model, with a narrower choice of scores.",
            "这是另一个模型，可选的分数更窄。",
        ),
    ),
)

SHIFT_AND_SCALE = Choose(
    id="shift-and-scale",
    text=words(
        "Softmax of the scores (2, 1, 0). What happens to the shares when all scores grow by 100, and what when all are "
        "multiplied by 100?",
        "对分数 (2, 1, 0) 取 Softmax。全部加 100，份额怎样？全部乘 100，份额又怎样？",
    ),
    options=(
        _option(
            True,
            "adding 100 changes nothing",
            "加 100，份额不变",
            "The common factor cancels.",
            "公共的因子约掉了。",
        ),
        _option(
            False,
            "adding 100 favours the largest",
            "加 100，最大的一项占得更多",
            "Only differences count, and they stay.",
            "只看分数之差，而差没有变。",
        ),
        _option(
            True,
            "multiplying by 100 makes the shares sharper",
            "乘 100，份额更尖锐",
            "Every difference grows a hundredfold.",
            "每个差都放大到一百倍。",
        ),
        _option(
            True,
            "were two scores tied for the largest, ever larger factors would divide everything between the two",
            "若有两个并列最大的分数，倍数越大，份额越趋于由这两项平分",
            "Their difference is 0, and stays 0 under any factor.",
            "它们的差是零，乘任何倍数仍是零。",
        ),
    ),
)

HULL_LEAVES = Choose(
    id="leaving-the-hull",
    text=words(
        "Which of these can put a row outside the convex hull of the values it read?",
        "下面哪些会使一行跑到它所读内容的凸包之外？",
    ),
    options=(
        _option(
            False,
            "negative scores",
            "分数为负",
            "The shares of negative scores are positive all the same.",
            "负分数的份额照样为正。",
        ),
        _option(True, "adding the residual", "加上残差", "It adds a vector from elsewhere.", "它加进了别处来的向量。"),
        _option(
            True,
            "dropout on the coefficients",
            "对混合系数做 dropout",
            "What is left need not sum to 1.",
            "剩下的系数之和不必为一。",
        ),
        _option(
            True,
            "the output projection",
            "输出投影",
            "Any linear map may follow, even into another dimension.",
            "它可以是任何线性变换，甚至换到别的维度。",
        ),
    ),
)

NO_PEEKING = Choose(
    id="no-peeking",
    text=words(
        "A training sentence contains 黑便. Why may the row of 出现 be trained to predict it?",
        "训练句子里就有“黑便”。为什么仍可以用“出现”那一行来预测它？",
    ),
    options=(
        _option(
            True,
            "in every layer that row reads nothing that follows it",
            "每一层里，那一行都不读它后面的位置",
            "And rows that it reads have read nothing later either: no way round is left.",
            "它所读的行也没有读过更后面的位置，绕路也不通。",
        ),
        _option(
            False,
            "the mask is applied once, in the last layer",
            "最后一层用一次掩码就够了",
            "An earlier layer would then have carried 黑便 into the row already.",
            "那样前面的层早已把“黑便”带进了这一行。",
        ),
        _option(
            False,
            "the target is not in the batch",
            "目标不在这批数据里",
            "It is; being in the batch and reaching the row are two things.",
            "它在。数据里有它，与它能流进这一行，是两回事。",
        ),
        _option(
            True,
            "all other parts work on one position at a time",
            "其余部分都是逐位置计算",
            "Norms, residuals and feed-forward networks bring in no other position.",
            "归一化、残差、前馈网络都不引入别的位置。",
        ),
    ),
)

TWO_SATURATIONS = Choose(
    id="what-saturates",
    text=words(
        "A softmax gives nearly everything to one wrong candidate. Where does the gradient nearly vanish?",
        "Softmax 几乎全部给了一个错误候选。哪里的梯度几乎消失？",
    ),
    options=(
        _option(
            True,
            "in attention, at the scores of that row",
            "在注意力里，这一行的分数处",
            "Every entry of the Jacobian contains a product of shares that goes to 0.",
            "Jacobian 的每个元素都含有趋于零的份额乘积。",
        ),
        _option(
            False,
            "in the output layer with cross-entropy, at the score of the target",
            "在配交叉熵的输出层里，目标的分数处",
            "There it is p − 1, which is near −1.",
            "那里是 p − 1，接近 −1。",
        ),
    ),
)  # fmt: skip
