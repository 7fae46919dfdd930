/** A few sentences for each part of the way, marked as what they are; what the run's options add is told beside it. */
import type { Bilingual, Expr, Header, StatementStatus } from "./data/types.ts";
import { children } from "./notation/tree.ts";
import type { View } from "./state/store.ts";
import type { Part } from "./state/structure.ts";

export interface Note {
  status: StatementStatus;
  text: Bilingual;
}

/** What a note looks at: which quantities the part has, and what its formulas read. */
interface Here {
  has: (name: string) => boolean;
  reads: (id: string) => boolean;
  header: Header;
}

interface Rule {
  status: StatementStatus;
  /** Sentences; a condition in front of one leaves it out where it does not hold. */
  sentences: readonly Sentence[];
}

interface Sentence extends Bilingual {
  when?: (here: Here) => boolean;
}

function rule(status: StatementStatus, ...sentences: Sentence[]): Rule {
  return { status, sentences };
}

function say(en: string, zh: string, when?: (here: Here) => boolean): Sentence {
  return when ? { en, zh, when } : { en, zh };
}

const has =
  (...names: string[]) =>
  (here: Here): boolean =>
    names.some(here.has);
const lacks =
  (...names: string[]) =>
  (here: Here): boolean =>
    !names.some(here.has);
const isParameter =
  (id: string, wanted: boolean) =>
  ({ header }: Here): boolean =>
    header.quantities.some((each) => each.id === id && (each.kind === "parameter") === wanted);
const windowed = ({ reads }: Here): boolean => reads("window");
const packed = ({ reads }: Here): boolean => reads("embed.seg");
const tied = isParameter("head.U", false);

const NORM = rule(
  "definition",
  say(
    "Each row is shifted to mean 0 and scaled to variance 1, then stretched by $\\gamma$ and moved by $\\beta$.",
    "每一行先平移到均值 0、缩放到方差 1，再乘 $\\gamma$、加 $\\beta$。",
    lacks("rms"),
  ),
  say(
    "Each row is divided by its root mean square, then stretched by $\\gamma$; nothing is subtracted.",
    "每一行除以自己的均方根，再乘 $\\gamma$；不减去任何数。",
    has("rms"),
  ),
);
const NORM_BACK = rule(
  "derivation",
  say(
    "Mean and deviation depend on the whole row, so the gradient of one coordinate subtracts two means of the row.",
    "均值和标准差依赖整行，所以一个坐标的梯度要减去这一行的两个平均。",
    lacks("rms"),
  ),
  say(
    "The root mean square depends on the whole row, so the gradient of one coordinate subtracts a mean of the row.",
    "均方根依赖整行，所以一个坐标的梯度要减去这一行的一个平均。",
    has("rms"),
  ),
);
const DROPOUT = say(
  "This is a step of training: dropout left out numbers by chance and enlarged the others, so that the mean stays. Which ones were drawn was recorded.",
  "这是训练中的一步：Dropout 随机去掉一些数，并放大其余的数，使均值不变。抽中了哪些已被记录。",
  has("kept_X", "kept_A", "kept_O", "kept_F"),
);
const DROPOUT_BACK = say(
  "What dropout left out gets gradient 0; the rest is enlarged by the same factor as on the way forward.",
  "被 Dropout 去掉的数梯度为 0；其余的按前向时的同一倍数放大。",
  has("kept_X", "kept_A", "kept_O", "kept_F"),
);
const RESIDUAL = rule(
  "definition",
  say(
    "The branch is added to what came in: nothing that was known is overwritten.",
    "把分支的结果加到输入上：已有的内容不会被覆盖。",
  ),
  DROPOUT,
);
const RESIDUAL_BACK = rule(
  "derivation",
  say(
    "A sum hands its gradient to both sides unchanged; where a value is used twice, the gradients add up.",
    "加法把梯度原样交给两边；一个值用在几处，各处的梯度相加。",
  ),
  DROPOUT_BACK,
);
const MASK = rule(
  "definition",
  say(
    "Position $i$ may read position $j$ only where $j \\le i$.",
    "只有当 $j \\le i$ 时，位置 $i$ 才能读取位置 $j$。",
  ),
  say(
    "A window keeps it to the last few of these: $i - j$ stays below the size of the window.",
    "滑动窗口只留下其中最近的几个：$i - j$ 小于窗口长度。",
    windowed,
  ),
  say(
    "Several texts share this row, and each reads itself alone: both positions must be of one segment.",
    "这一行里有几段文本，各段只能读取自己：两个位置必须属于同一段。",
    packed,
  ),
);

const FORWARD: Record<string, Rule> = {
  embed: rule(
    "definition",
    say(
      "Each token is a number; its row of the table $E$ becomes the vector of its position.",
      "每个词元是一个编号；表 $E$ 中它的那一行就是该位置的向量。",
    ),
    say(
      "The row of its position in $P$, a table learnt like $E$, is added.",
      "再加上表 $P$ 中该位置的那一行；$P$ 与 $E$ 一样由训练得到。",
      isParameter("embed.P", true),
    ),
    say(
      "A row of sines and cosines, which tells positions apart and is not learnt, is added.",
      "再加上一行正弦和余弦：它区分各个位置，不由训练得到。",
      isParameter("embed.P", false),
    ),
    say(
      "Several texts share this row; positions begin anew in each.",
      "这一行里有几段文本；位置在每一段重新从头数。",
      has("seg"),
    ),
    DROPOUT,
  ),
  mask: MASK,
  window: MASK,
  rope: rule(
    "definition",
    say(
      "Two coordinates make a pair that is turned in its plane, by an angle that grows with the position; each pair has its own speed.",
      "两个坐标组成一对，在它们的平面里旋转；转角随位置增大，每一对的转速不同。",
    ),
  ),
  heads: rule(
    "definition",
    say(
      "Several heads of queries read the same keys and values; this table tells which of them a head reads.",
      "几个查询头读取同一组键和值；这张表说明每个头读哪一组。",
    ),
  ),
  norm1: NORM,
  norm2: NORM,
  final_norm: NORM,
  attn: rule(
    "definition",
    say(
      "Queries meet keys and give scores; softmax turns each row of scores into coefficients that add up to 1; values are mixed with them.",
      "查询与键相遇得到分数；Softmax 把每行分数变成和为 1 的系数；再用系数混合各个值。",
    ),
    say(
      "Before that, each query and each key is divided by its own root mean square and stretched.",
      "在此之前，每个查询和每个键先除以自己的均方根，再乘以增益。",
      has("gamma_Q"),
    ),
    say(
      "Queries and keys are turned by the angle of their position, so a score depends on the distance between two positions, not on where they stand.",
      "查询和键按各自位置的角度旋转，所以分数取决于两个位置的距离，而不取决于它们在哪里。",
      has("Q_R"),
    ),
    DROPOUT,
  ),
  R: RESIDUAL,
  X: RESIDUAL,
  ffn: rule(
    "definition",
    say(
      "Each row by itself: out to $d_{ff}$ coordinates, bent by the activation, back to $d$.",
      "逐行独立进行：先到 $d_{ff}$ 维，经过激活函数，再回到 $d$ 维。",
      lacks("W_G"),
    ),
    say(
      "Each row by itself goes out to $d_{ff}$ coordinates twice: one of the two is bent by the activation and, as a gate, multiplies the other; the product goes back to $d$.",
      "逐行独立进行：两次投影到 $d_{ff}$ 维，其一经过激活函数，作为门与另一个相乘；乘积再回到 $d$ 维。",
      has("W_G"),
    ),
  ),
  head: rule(
    "definition",
    say(
      "Each row is scored against every candidate of the vocabulary; softmax turns the scores into probabilities.",
      "每一行对词表中每个候选打分；Softmax 把分数变成概率。",
    ),
    say(
      "$U$ is not a parameter of its own: it is the table $E$, transposed.",
      "$U$ 不是单独的参数：它就是表 $E$ 的转置。",
      tied,
    ),
  ),
  loss: rule(
    "definition",
    say(
      "The loss is the mean, over the rows that count, of minus the logarithm of the target's probability.",
      "损失是计分各行目标概率的负对数的平均。",
    ),
  ),
};

const BACKWARD: Record<string, Rule> = {
  embed: rule(
    "derivation",
    say(
      "A row of $E$ collects the gradients of all positions that read it.",
      "$E$ 的一行收集所有读过它的位置的梯度。",
    ),
    say("A row that no position read has gradient 0.", "没有位置读过的行，梯度是 0。", (here) => !tied(here)),
    say(
      "The output head reads the same table, so what comes back through $U$ is added: both ways stand side by side.",
      "输出头读的是同一张表，所以还要加上经 $U$ 传回的梯度：两条路并列给出。",
      tied,
    ),
    DROPOUT_BACK,
  ),
  norm1: NORM_BACK,
  norm2: NORM_BACK,
  final_norm: NORM_BACK,
  attn: rule(
    "derivation",
    say(
      "From the output back through $W_O$ to the mixture, to coefficients and values; softmax couples a row, so each score's gradient subtracts the row's weighted mean.",
      "由输出经 $W_O$ 回到混合结果，再到系数和值；Softmax 让一行互相牵制，所以每个分数的梯度要减去该行的加权平均。",
    ),
    say(
      "Gradients of turned queries and keys are turned back by the same angle.",
      "旋转过的查询和键，其梯度按同一角度转回去。",
      has("Q_R"),
    ),
    say(
      "Keys and values that several heads read add up what each of them sends.",
      "几个头共用的键和值，把各个头传来的梯度相加。",
      ({ header }) => header.quantities.some((each) => each.id === "heads.kv"),
    ),
    DROPOUT_BACK,
  ),
  R: RESIDUAL_BACK,
  X: RESIDUAL_BACK,
  ffn: rule(
    "derivation",
    say(
      "The activation passes each gradient on multiplied by its own slope.",
      "激活函数把每个梯度乘上自己的斜率再传下去。",
    ),
    say(
      "A product hands each side the gradient times the other side.",
      "乘积传给一边的梯度，要乘上另一边的数。",
      has("W_G"),
    ),
  ),
  head: rule(
    "derivation",
    say(
      "For softmax with cross-entropy the gradient of a logit is its probability, minus 1 at the target.",
      "Softmax 加交叉熵：logit 的梯度就是概率，在目标处再减 1。",
    ),
  ),
  loss: rule(
    "definition",
    say(
      "The backward pass starts with the derivative of the loss by itself, which is 1.",
      "反向从损失对自身的导数 1 开始。",
    ),
  ),
};

/** Names of quantities and of sizes in an expression. */
function namesIn(expr: Expr): string[] {
  const own = expr[0] === "ref" || expr[0] === "scalar" ? [expr[1]] : [];
  return [...own, ...children(expr).flatMap(namesIn)];
}

/** The note of a part in a view, null where there is none. */
export function noteFor(part: Part, view: View, header: Header): Note | null {
  const name = part.id.slice(part.id.lastIndexOf(".") + 1);
  const found = view === "update" || view === "probes" ? undefined : (view === "gradient" ? BACKWARD : FORWARD)[name];
  if (!found) return null;
  const own = new Set(part.quantities.map((each) => each.id));
  const here: Here = {
    has: (quantity) => part.quantities.some((each) => each.name === quantity),
    reads: (id) => header.statements.some((each) => own.has(each.target) && namesIn(each.expr).includes(id)),
    header,
  };
  const told = found.sentences.filter(({ when }) => when === undefined || when(here));
  const text = { en: told.map(({ en }) => en).join(" "), zh: told.map(({ zh }) => zh).join("") };
  return { status: found.status, text };
}
