/** Walking and rewriting expression trees (array form, see `data/types.ts`). */
import type { Expr } from "../data/types.ts";

/** The direct subexpressions, in written order (the filter of a reduction last). */
export function children(e: Expr): Expr[] {
  switch (e[0]) {
    case "ref":
      return e[3];
    case "add":
    case "mul":
      return e.slice(1) as Expr[];
    case "fn":
    case "bool":
    case "cmp":
      return e.slice(2) as Expr[];
    case "neg":
    case "div":
    case "pow":
    case "cond":
      return e.slice(1) as Expr[];
    case "reduce":
      return e[4] === null ? [e[2]] : [e[2], e[4]];
    default:
      return [];
  }
}

/** The quantities that `e` reads, each as often as it is read. */
export function namesIn(e: Expr): string[] {
  return [...(e[0] === "ref" ? [e[1]] : []), ...children(e).flatMap(namesIn)];
}

/** `e` with its direct subexpressions replaced, same number and order as `children`. */
export function rebuild(e: Expr, parts: Expr[]): Expr {
  switch (e[0]) {
    case "ref":
      return ["ref", e[1], e[2], parts];
    case "add":
    case "mul":
    case "neg":
    case "div":
    case "pow":
    case "cond":
      return [e[0], ...parts] as Expr;
    case "fn":
    case "bool":
    case "cmp":
      return [e[0], e[1], ...parts] as Expr;
    case "reduce":
      return ["reduce", e[1], parts[0], e[3], e[4] === null ? null : parts[1]];
    default:
      return e;
  }
}

/** Letters that no reduction inside `e` binds, in order of first appearance. */
export function freeLetters(e: Expr): string[] {
  const found = new Set<string>();
  const visit = (node: Expr, bound: ReadonlySet<string>): void => {
    if (node[0] === "idx" && !bound.has(node[1])) found.add(node[1]);
    const inner = node[0] === "reduce" ? new Set([...bound, ...node[3].map(([letter]) => letter)]) : bound;
    for (const part of children(node)) visit(part, inner);
  };
  visit(e, new Set());
  return [...found];
}

/** `e` with every letter `from` called `to`, bound ones included. */
export function renameLetter(e: Expr, from: string, to: string): Expr {
  if (e[0] === "idx") return e[1] === from ? ["idx", to] : e;
  const parts = rebuild(e, children(e).map((part) => renameLetter(part, from, to)));
  if (parts[0] !== "reduce") return parts;
  return ["reduce", parts[1], parts[2], parts[3].map(([letter, size]) => [letter === from ? to : letter, size]), parts[4]];
}

/** Whether two expressions are written alike. */
export function same(a: Expr, b: Expr): boolean {
  return written(a) === written(b);
}

/** The factors of `e`, products within products opened and a minus as the factor -1. */
export function productOf(e: Expr): Expr[] {
  if (e[0] === "mul") return (e.slice(1) as Expr[]).flatMap(productOf);
  if (e[0] === "neg") return [["num", -1], ...productOf(e[1])];
  return [e];
}

/** The letter along which `exp(f)/sum(exp(f) for ...)` is a softmax, or null where `e` is something else. */
export function softmaxLetter(e: Expr): string | null {
  if (e[0] !== "div") return null;
  const [, over, under] = e;
  if (over[0] !== "fn" || over[1] !== "exp") return null;
  if (under[0] !== "reduce" || under[1] !== "sum" || under[4] !== null || under[3].length !== 1) return null;
  const body = under[2];
  if (body[0] !== "fn" || body[1] !== "exp") return null;
  const [f, g, bound] = [over[2], body[2], under[3][0][0]];
  const inBody = freeLetters(g);
  return freeLetters(f).find((letter) => !inBody.includes(letter) && same(renameLetter(f, letter, bound), g)) ?? null;
}

/** `f` where `e` is `ln(sum(exp(f) for ...))` without a filter, with the reduction; null where it is something else. */
export function logSumExp(e: Expr): { f: Expr; loops: [string, string][] } | null {
  if (e[0] !== "fn" || e[1] !== "ln") return null;
  const total = e[2];
  if (total[0] !== "reduce" || total[1] !== "sum" || total[4] !== null) return null;
  const body = total[2];
  if (body[0] !== "fn" || body[1] !== "exp") return null;
  const inside = freeLetters(body[2]);
  return total[3].every(([letter]) => inside.includes(letter)) ? { f: body[2], loops: total[3] } : null;
}

/** `e` and everything below it, parents before children. */
export function* walk(e: Expr): Generator<Expr> {
  yield e;
  for (const part of children(e)) yield* walk(part);
}

/** `e` rebuilt from the leaves up, `change` applied to every node once its children are done. */
export function transform(e: Expr, change: (node: Expr) => Expr): Expr {
  return change(rebuild(e, children(e).map((part) => transform(part, change))));
}

const texts = new WeakMap<Expr, string>();

/** One text per tree: equal exactly for equal trees. */
export function written(e: Expr): string {
  let text = texts.get(e);
  if (text === undefined) {
    text = JSON.stringify(e);
    texts.set(e, text);
  }
  return text;
}

/** Whether `e` is `1 if test else 0`, printed as the bracket `[test]`. */
export function isIverson(e: Expr): boolean {
  return e[0] === "cond" && written(e[2]) === '["num",1]' && written(e[3]) === '["num",0]';
}
