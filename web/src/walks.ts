/**
 * Guided walks: one number of the 24-parameter model from the tokens through the loss and the update, step by step.
 *
 * A step names its cell as the command line does (indices from 0; `$target` is the target's token id) and says what
 * happens there; `{value}` is the number now standing in that cell, so the text stays true after an edit.
 */
import type { Bilingual, Header } from "./data/types.ts";

export interface WalkStep {
  cell: string;
  text: Bilingual;
}

export interface Walk {
  id: string;
  title: Bilingual;
  steps: WalkStep[];
}

function step(cell: string, en: string, zh: string): WalkStep {
  return { cell, text: { en, zh } };
}

/** From the scores of the target to the loss and back to the residual row: the same in both walks. */
const TO_THE_LOSS: WalkStep[] = [
  step(
    "head.logits[1,$target]",
    "Row 2 of $R$ (the notes call it $h$) times the column of “{target}” in $U$: the logit of the target is {value}. A logit is only a score; it may be negative.",
    "$R$ 的第 2 行（讲义记作 $h$）乘 $U$ 中“{target}”的那一列：目标的 logit 是 {value}。它只是相对分数，可以为负。",
  ),
  step(
    "head.p[1,$target]",
    "Softmax over the vocabulary: the model gives “{target}” the probability {value}.",
    "对词表做 Softmax：模型给“{target}”的概率是 {value}。",
  ),
  step(
    "loss.L",
    "The loss is minus the logarithm of that probability: {value}. Here the forward pass ends and the backward pass begins.",
    "损失是这个概率的负对数：{value}。前向到此为止，反向从这里开始。",
  ),
  step(
    "head.logits.grad[1,$target]",
    "Probability minus one at the target, probability alone elsewhere: {value}. Negative means that raising this logit lowers the loss.",
    "目标处是概率减 1，其余处就是概率：{value}。负数表示：提高这个 logit 会降低损失。",
  ),
  step(
    "blocks.0.R.grad[1,0]",
    "Back through $U$: the gradients of all logits, weighted by the first row of $U$, give {value}.",
    "经过 $U$ 往回：各 logit 的梯度按 $U$ 的第 1 行加权求和，得到 {value}。",
  ),
];

const QUERY: Walk = {
  id: "query",
  title: { en: "Follow $W_Q$, row 2: how the error reaches a query", zh: "跟着 $W_Q$ 第 2 行走：误差怎样传到查询" },
  steps: [
    step(
      "embed.t[1]",
      "Position 2 holds the token “{value}”. Its row of the table $E$ is looked up.",
      "第 2 个位置是词元“{value}”。从表 $E$ 中查出它的那一行。",
    ),
    step(
      "embed.X[1,1]",
      "The second number of that row is {value}. It will multiply the parameter we follow.",
      "这一行的第 2 个数是 {value}。它将与我们跟踪的参数相乘。",
    ),
    step(
      "blocks.0.attn.W_Q[1,0]",
      "This is the parameter: $W_Q$, row 2. It stands at {value}. You may change it in the field below.",
      "这就是那个参数：$W_Q$ 第 2 行，现在是 {value}。可以在下面的输入框里改它。",
    ),
    step(
      "blocks.0.attn.Q[1,0]",
      "The query of position 2: row 2 of $X$ times the column of $W_Q$ is {value}.",
      "第 2 个位置的查询：$X$ 第 2 行乘 $W_Q$ 那一列，得 {value}。",
    ),
    step(
      "blocks.0.attn.S[1,0]",
      "Query of position 2 times key of position 1, divided by $\\sqrt{d_k}$: the score is {value}.",
      "第 2 个位置的查询乘第 1 个位置的键，再除以 $\\sqrt{d_k}$：分数是 {value}。",
    ),
    step(
      "blocks.0.attn.A[1,0]",
      "Softmax along the row: position 2 reads position 1 with the coefficient {value}.",
      "沿这一行做 Softmax：第 2 个位置以系数 {value} 读取第 1 个位置。",
    ),
    step(
      "blocks.0.attn.Z[1,0]",
      "The values, mixed with these coefficients: {value}.",
      "各个值按这些系数混合：{value}。",
    ),
    step(
      "blocks.0.R[1,0]",
      "Through $W_O$, then added to the input of the position: the residual stream holds {value}.",
      "经过 $W_O$，再加上该位置的输入：残差流中是 {value}。",
    ),
    ...TO_THE_LOSS,
    step(
      "blocks.0.attn.Z.grad[1,0]",
      "The residual passes the gradient on as it is; $W_O$ transposed leads it to the mixture: {value}.",
      "残差把梯度原样传下去；经 $W_O$ 的转置到达混合结果：{value}。",
    ),
    step(
      "blocks.0.attn.A.grad[1,0]",
      "How much the loss would change if this coefficient alone could move: {value}.",
      "假如只有这个系数能单独变动，损失的变化率是 {value}。",
    ),
    step(
      "blocks.0.attn.S.grad[1,0]",
      "But coefficients of a row add up to 1. Softmax subtracts their weighted mean: the score's gradient is {value}.",
      "但同一行的系数之和为 1。Softmax 要减去加权平均：分数的梯度是 {value}。",
    ),
    step(
      "blocks.0.attn.Q.grad[1,0]",
      "From the scores of row 2, through the keys, to the query: {value}.",
      "由第 2 行的分数经过各个键，回到查询：{value}。",
    ),
    step(
      "blocks.0.attn.W_Q.grad[1,0]",
      "Input times gradient of the query, summed over positions: {value}. Three independent witnesses agree below.",
      "输入乘查询的梯度，对位置求和：{value}。下方三个相互独立的验证彼此一致。",
    ),
    step(
      "blocks.0.attn.W_Q.new[1,0]",
      "One step of size $\\eta$ = {eta} against the gradient: the parameter becomes {value}.",
      "逆梯度方向走一步，$\\eta$ = {eta}：参数变成 {value}。",
    ),
    step(
      "blocks.0.attn.A.after[1,0]",
      "All parameters were updated together; forward once more, position 2 reads position 1 with {value}. Learning is not “more attention everywhere”.",
      "所有参数一起更新后再前向一遍：第 2 个位置读取第 1 个位置的系数是 {value}。学习并不等于“处处加大注意力”。",
    ),
    step(
      "head.p.after[1,$target]",
      "The probability of “{target}” is now {value}.",
      "“{target}”的概率现在是 {value}。",
    ),
    step("loss.L.after", "And the loss is {value}.", "损失是 {value}。"),
  ],
};

const EMBEDDING: Walk = {
  id: "embedding",
  title: {
    en: "Follow $E$, row 1, column 1: one number on four paths",
    zh: "跟着 $E$ 第 1 行第 1 列走：一个数的四条路",
  },
  steps: [
    step(
      "embed.E[0,0]",
      "The first number of the first row of $E$: {value}. A token that reads this row carries it into the model.",
      "$E$ 第 1 行的第 1 个数：{value}。读到这一行的词元把它带进模型。",
    ),
    step(
      "embed.X[0,0]",
      "Position 1 holds “{first}”: the looked-up number is {value}. From here it goes four ways: query, key, value, residual.",
      "第 1 个位置是“{first}”：查到的数是 {value}。它从这里分四路：查询、键、值和残差。",
    ),
    step(
      "blocks.0.attn.K[0,0]",
      "Into the key of position 1: {value}. Position 2 will compare its query with it.",
      "进入第 1 个位置的键：{value}。第 2 个位置会拿自己的查询与它比较。",
    ),
    step(
      "blocks.0.attn.V[0,0]",
      "Into the value of position 1: {value}. This is what position 2 can read.",
      "进入第 1 个位置的值：{value}。这是第 2 个位置能读到的内容。",
    ),
    step(
      "blocks.0.attn.S[1,0]",
      "The score of position 2 for position 1: {value}.",
      "第 2 个位置对第 1 个位置的分数：{value}。",
    ),
    step("blocks.0.attn.A[1,0]", "Its coefficient: {value}.", "相应的系数：{value}。"),
    step("blocks.0.attn.Z[1,0]", "The mixture that position 2 reads: {value}.", "第 2 个位置读到的混合结果：{value}。"),
    ...TO_THE_LOSS,
    step(
      "blocks.0.attn.V.grad[0,0]",
      "First way back, by the value: coefficient times gradient of the mixture, {value}.",
      "第一条回路，经过值：系数乘混合结果的梯度，{value}。",
    ),
    step("blocks.0.attn.K.grad[0,0]", "Second way back, by the key: {value}.", "第二条回路，经过键：{value}。"),
    step(
      "blocks.0.attn.Q.grad[0,0]",
      "Third, by the query of position 1: {value}. Its row may read only itself, so its softmax cannot move.",
      "第三条，经过第 1 个位置的查询：{value}。这一行只能读自己，Softmax 动不了。",
    ),
    step(
      "blocks.0.R.grad[0,0]",
      "Fourth, by the residual of position 1: {value}. Only row 2 counts in the loss.",
      "第四条，经过第 1 个位置的残差：{value}。只有第 2 行计入损失。",
    ),
    step(
      "embed.X.grad[0,0]",
      "The paths add up: {value}. Each contribution stands below with its sender.",
      "各路相加：{value}。下面逐条列出每一份及其来源。",
    ),
    step(
      "embed.E.grad[0,0]",
      "Every position that read this row sends its part back to the table: {value}.",
      "凡是读过这一行的位置，都把自己的一份送回表中：{value}。",
    ),
    step(
      "embed.E.new[0,0]",
      "One step of size $\\eta$ = {eta}: the number becomes {value}.",
      "走一步，$\\eta$ = {eta}：这个数变成 {value}。",
    ),
    step(
      "embed.X.after[0,0]",
      "Forward once more: the looked-up number is now {value}.",
      "再前向一遍：查到的数现在是 {value}。",
    ),
    step("loss.L.after", "And the loss after the joint update is {value}.", "联合更新之后的损失是 {value}。"),
  ],
};

/** The walks that fit a trace. */
export function walksFor(header: Header): readonly Walk[] {
  return header.source === "toy24" ? [QUERY, EMBEDDING] : [];
}
