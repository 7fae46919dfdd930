/** The parts of the model and who reads whom, read off the statements of the trace. */
import type { Bilingual, Expr, Header, QuantityInfo, Statement } from "../data/types.ts";
import { children } from "../notation/tree.ts";
import { keyOf, type AnyFace } from "./keys.ts";

/** A stretch of the way: the quantities declared under one path, in order. */
export interface Part {
  id: string;
  path: string;
  title: Bilingual;
  /** Block it belongs to, counted from 0. */
  block: number | null;
  quantities: QuantityInfo[];
}

/** A reference inside an expression: name, face and index expressions. */
export type Ref = Extract<Expr, ["ref", ...unknown[]]>;

export interface Structure {
  parts: Part[];
  partOf: Map<string, Part>;
  quantity: Map<string, QuantityInfo>;
  /** For every key: statements that read it (each once). */
  readBy: Map<string, number[]>;
  /** For every key: statements that make it. */
  madeBy: Map<string, number[]>;
  blocks: number;
}

const TITLES: Record<string, Bilingual> = {
  embed: { en: "Embedding", zh: "嵌入" },
  mask: { en: "Mask", zh: "掩码" },
  window: { en: "Mask with a window", zh: "滑动窗口掩码" },
  rope: { en: "Rotation angles", zh: "旋转角" },
  heads: { en: "Which heads share keys", zh: "哪些头共用键值" },
  norm1: { en: "Norm", zh: "归一化" },
  attn: { en: "Attention", zh: "注意力" },
  R: { en: "Residual", zh: "残差" },
  norm2: { en: "Second norm", zh: "第二个归一化" },
  ffn: { en: "Feed-forward", zh: "前馈网络" },
  X: { en: "Second residual", zh: "第二个残差" },
  final_norm: { en: "Final norm", zh: "最终归一化" },
  head: { en: "Output head", zh: "输出头" },
  loss: { en: "Loss", zh: "损失" },
  optimizer: { en: "Optimizer", zh: "优化器" },
};

export function refsOf(expr: Expr): Ref[] {
  const found: Ref[] = expr[0] === "ref" ? [expr] : [];
  for (const child of children(expr)) found.push(...refsOf(child));
  return found;
}

/** The key that a statement makes. */
export function targetKey(statement: Statement): string {
  return keyOf(statement.target, statement.face);
}

/** Every key that a statement reads, each once. */
export function keysRead(statement: Statement): string[] {
  return [...new Set(refsOf(statement.expr).map((ref) => keyOf(ref[1], ref[2] as AnyFace)))];
}

/** What is said inside another part and belongs to it: a norm of queries and keys is a step of attention. */
const INNER = /\.qk_norm$/;

/**
 * The part of a quantity; all lines of the optimizer are one. What a block says itself is the end of a stretch of it
 * (dropout, then the sum), so the sum that comes next names the part: `blocks.0.kept_O` belongs to `blocks.0.R`.
 */
function partId(at: number, quantities: readonly QuantityInfo[]): string {
  const { path, id, kind } = quantities[at];
  if (kind === "optimizer state") return "optimizer";
  if (!/^blocks\.\d+$/.test(path)) return path.replace(INNER, "") || id;
  const sum = quantities.slice(at).find((each) => each.path === path && (each.name === "R" || each.name === "X"));
  return sum?.id ?? id;
}

function blockOf(path: string): number | null {
  const found = /^blocks\.(\d+)/.exec(path);
  return found ? Number(found[1]) : null;
}

function partsOf(header: Header): Part[] {
  const parts = new Map<string, Part>();
  header.quantities.forEach((quantity, at) => {
    const id = partId(at, header.quantities);
    let part = parts.get(id);
    if (!part) {
      const name = id.slice(id.lastIndexOf(".") + 1);
      const title = TITLES[name] ?? { en: quantity.en, zh: quantity.zh };
      part = { id, path: quantity.path, title, block: blockOf(id), quantities: [] };
      parts.set(id, part);
    }
    part.quantities.push(quantity);
  });
  return [...parts.values()];
}

function add(map: Map<string, number[]>, key: string, statement: number): void {
  const list = map.get(key);
  if (list) list.push(statement);
  else map.set(key, [statement]);
}

export function structureOf(header: Header): Structure {
  const parts = partsOf(header);
  const readBy = new Map<string, number[]>();
  const madeBy = new Map<string, number[]>();
  header.statements.forEach((statement, number) => {
    add(madeBy, targetKey(statement), number);
    for (const key of keysRead(statement)) add(readBy, key, number);
  });
  const partOf = new Map<string, Part>();
  for (const part of parts) for (const quantity of part.quantities) partOf.set(quantity.id, part);
  const blocks = new Set(parts.map((part) => part.block).filter((block) => block !== null)).size;
  const quantity = new Map(header.quantities.map((each) => [each.id, each]));
  return { parts, partOf, quantity, readBy, madeBy, blocks };
}
