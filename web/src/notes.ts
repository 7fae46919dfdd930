/** One sentence or two for each part of the way, marked as what they are. */
import type { Bilingual } from "./data/types.ts";
import type { View } from "./state/store.ts";
import type { StatementStatus } from "./views/status.tsx";

export interface Note {
  status: StatementStatus;
  text: Bilingual;
}

function note(status: StatementStatus, en: string, zh: string): Note {
  return { status, text: { en, zh } };
}

const NORM = note(
  "definition",
  "Each row is shifted to mean 0 and scaled to variance 1, then stretched by $\\gamma$ and moved by $\\beta$.",
  "每一行先平移到均值 0、缩放到方差 1，再乘 $\\gamma$、加 $\\beta$。",
);
const NORM_BACK = note(
  "derivation",
  "Mean and deviation depend on the whole row, so the gradient of one coordinate subtracts two means of the row.",
  "均值和标准差依赖整行，所以一个坐标的梯度要减去这一行的两个平均。",
);
const RESIDUAL = note(
  "definition",
  "The branch is added to what came in: nothing that was known is overwritten.",
  "把分支的结果加到输入上：已有的内容不会被覆盖。",
);
const RESIDUAL_BACK = note(
  "derivation",
  "A sum hands its gradient to both sides unchanged; where a value is used twice, the gradients add up.",
  "加法把梯度原样交给两边；一个值用在几处，各处的梯度相加。",
);

const FORWARD: Record<string, Note> = {
  embed: note(
    "definition",
    "Each token is a number; its row of the table $E$ becomes the vector of its position.",
    "每个词元是一个编号；表 $E$ 中它的那一行就是该位置的向量。",
  ),
  mask: note(
    "definition",
    "Position $i$ may read position $j$ only where $j \\le i$.",
    "只有当 $j \\le i$ 时，位置 $i$ 才能读取位置 $j$。",
  ),
  norm1: NORM,
  norm2: NORM,
  final_norm: NORM,
  attn: note(
    "definition",
    "Queries meet keys and give scores; softmax turns each row of scores into coefficients that add up to 1; values are mixed with them.",
    "查询与键相遇得到分数；Softmax 把每行分数变成和为 1 的系数；再用系数混合各个值。",
  ),
  R: RESIDUAL,
  X: RESIDUAL,
  ffn: note(
    "definition",
    "Each row by itself: out to $d_{ff}$ coordinates, bent by the activation, back to $d$.",
    "逐行独立进行：先到 $d_{ff}$ 维，经过激活函数，再回到 $d$ 维。",
  ),
  head: note(
    "definition",
    "Each row is scored against every candidate of the vocabulary; softmax turns the scores into probabilities.",
    "每一行对词表中每个候选打分；Softmax 把分数变成概率。",
  ),
  loss: note(
    "definition",
    "The loss is the mean, over the rows that count, of minus the logarithm of the target's probability.",
    "损失是计分各行目标概率的负对数的平均。",
  ),
};

const BACKWARD: Record<string, Note> = {
  embed: note(
    "derivation",
    "A row of $E$ collects the gradients of all positions that read it; a row that no position read has gradient 0.",
    "$E$ 的一行收集所有读过它的位置的梯度；没有位置读过的行，梯度是 0。",
  ),
  norm1: NORM_BACK,
  norm2: NORM_BACK,
  final_norm: NORM_BACK,
  attn: note(
    "derivation",
    "From the output back through $W_O$ to the mixture, to coefficients and values; softmax couples a row, so each score's gradient subtracts the row's weighted mean.",
    "由输出经 $W_O$ 回到混合结果，再到系数和值；Softmax 让一行互相牵制，所以每个分数的梯度要减去该行的加权平均。",
  ),
  R: RESIDUAL_BACK,
  X: RESIDUAL_BACK,
  ffn: note(
    "derivation",
    "The activation passes each gradient on multiplied by its own slope.",
    "激活函数把每个梯度乘上自己的斜率再传下去。",
  ),
  head: note(
    "derivation",
    "For softmax with cross-entropy the gradient of a logit is its probability, minus 1 at the target.",
    "Softmax 加交叉熵：logit 的梯度就是概率，在目标处再减 1。",
  ),
  loss: note(
    "definition",
    "The backward pass starts with the derivative of the loss by itself, which is 1.",
    "反向从损失对自身的导数 1 开始。",
  ),
};

/** The note of a part in a view, null where there is none. */
export function noteFor(part: string, view: View): Note | null {
  const name = part.slice(part.lastIndexOf(".") + 1);
  if (view === "gradient") return BACKWARD[name] ?? null;
  return view === "update" ? null : (FORWARD[name] ?? null);
}
