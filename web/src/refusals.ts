/** What the page says where it lacks a number, cannot do what was asked, or does not understand a name. */
export const REFUSALS = {
  leftOut: [
    "With everything this page would be larger than {megabytes} MB, so some tensors were left out: those after the update first, then parameters and their gradients, activations last; of each the largest first.",
    "若包含全部数值，本页将超过 {megabytes} MB，所以略去了一些张量：先是更新之后的，再是参数及其梯度，最后才是激活值；每一类从最大的开始。",
  ],
  bringIt: ["This command writes a page that has it:", "下面的命令写出含有它的页面："],
  computeHere: ["Compute it here", "在此计算"],
  needsMissing: [
    "Its arithmetic reads {key}, which is not recorded in this page.",
    "它的算式要读取 {key}，而本页没有记录。",
  ],
  tooLarge: [
    "This model is too large to be computed again in a page ({millions} million multiplications for each edit), so nothing can be changed here: every number is as the run recorded it. To change one, write another page:",
    "模型太大，无法在页面中重新计算（每次改动要做 {millions} 百万次乘法），所以这里不能改动：每个数都是运行时的记录。要改动一个数，请另写一页：",
  ],
  tooManyNumbers: [
    "These are too many numbers for the browser to save at once. Write them with:",
    "数值太多，浏览器无法一次保存。请用命令写出：",
  ],
  refused_tooLarge: ["this model is too large to be computed again here", "模型太大，无法在此重新计算"],
  refused_oneRow: ["one row must count in the loss", "至少要有一行计入损失"],
  refused_noToken: ["the vocabulary has no such token", "词表中没有这个词元"],
  refused_noCell: ["this number cannot be changed", "这个数不能改"],
  refused_notFinite: ["it must be a finite number, and a rate at least 0", "必须是有限的数，学习率不能小于 0"],
  refused_noRow: ["there is no such row", "没有这一行"],
  refused_rowCount: ["every row needs one token", "每一行都要有一个词元"],
  refused_notLeaf: ["it is computed, not given", "它是算出来的，不是给定的"],
  noSuchName: ["“{name}” names nothing here.", "这里没有叫“{name}”的量。"],
  nearNames: ["Did you mean: {names}?", "是不是想找：{names}？"],
  severalNames: ["“{name}” means several: {names}.", "“{name}”有好几个：{names}。"],
  noSuchFace: ["{name} has no such value; it has: {names}.", "{name} 没有这个值；它有：{names}。"],
  wrongIndex: [
    "{name} has {count} indices, each from 0: {example} to {last}.",
    "{name} 有 {count} 个序号，都从 0 开始：从 {example} 到 {last}。",
  ],
  noIndex: ["{name} is a single number, without indices: {example}.", "{name} 是单独一个数，不带序号：{example}。"],
  writeLike: ["Write a name as on the command line: {example}.", "写法与命令行相同：{example}。"],
} as const satisfies Record<string, readonly [en: string, zh: string]>;
