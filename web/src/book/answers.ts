/** Exercises: numbers drawn by a seed, what is asked, whether what a reader wrote is right. */
import type { Statement } from "../data/types.ts";
import type { Engine } from "../notation/engine.ts";
import { cellsOf } from "../state/keys.ts";
import type { Cell } from "../state/store.ts";
import { parseNumber } from "../state/text.ts";
import type { ComputeExercise, Draw, Nested, Program } from "./data.ts";
import { cellAt } from "./live.ts";

/** Numbers in [0, 1) that follow from a seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The places 0 … `count` − 1 in an order that follows from the seed. */
export function shuffled(count: number, seed: number): number[] {
  const random = randomOf(seed);
  const order = Array.from({ length: count }, (_, k) => k);
  for (let k = count - 1; k > 0; k--) {
    const other = Math.floor(random() * (k + 1));
    [order[k], order[other]] = [order[other], order[k]];
  }
  return order;
}

function drawn({ low, high, step = 1 }: Draw, random: () => number): number {
  const steps = Math.round((high - low) / step);
  return Number((low + Math.floor(random() * (steps + 1)) * step).toPrecision(12));
}

function nested(shape: readonly number[], next: () => number): Nested {
  if (shape.length === 0) return next();
  return Array.from({ length: shape[0] }, () => nested(shape.slice(1), next));
}

/** The program of an exercise with the numbers of one try. */
export function programOf({ id, title, program, draw }: ComputeExercise, seed: number): Program {
  const random = randomOf(seed);
  const fresh = Object.entries(draw).map(([name, range]): [string, Nested] => {
    const axes = program.quantities.find((each) => each.id === name)?.axes ?? [];
    return [name, nested(axes.map(([, dimension]) => program.scalars[dimension]), () => drawn(range, random))];
  });
  const inputs = { ...program.inputs, ...Object.fromEntries(fresh) };
  return { show: Object.keys(inputs), labels: {}, notes: {}, ...program, id, title, inputs };
}

/** The cells that are asked for. */
export function asked(engine: Engine, ask: ComputeExercise["ask"]): Cell[] {
  return ask.flatMap((each) => (typeof each === "string" ? cellsOfTensor(engine, each) : [cellAt(engine, each)]));
}

/** Every cell of a tensor, row by row. */
export function cellsOfTensor(engine: Engine, key: string): Cell[] {
  return Array.from({ length: cellsOf(engine.shape(key)) }, (_, flat) => ({ key, flat }));
}

/** A number, or a fraction of two: `1/3`. Null where it is neither. */
export function parseAnswer(text: string): number | null {
  const [over, under, ...more] = text.split("/").map(parseNumber);
  if (over === undefined || over === null || more.length > 0) return null;
  if (under === undefined) return text.includes("/") ? null : over;
  return under === null || under === 0 ? null : over / under;
}

/** Three significant digits are enough. */
const CLOSE = 0.005;
/** What is exactly zero by its definition may be off by rounding. */
const ZERO = 1e-9;

/** Whether `x` is the number `wanted`, rounded to three significant digits or better. */
export function agrees(x: number, wanted: number): boolean {
  return Math.abs(x - wanted) <= Math.max(ZERO, CLOSE * Math.abs(wanted));
}

export type Mark = "right" | "wrong" | "open";

/** What to say of an answer: nothing where nothing is written. */
export function markOf(text: string, wanted: number): Mark {
  if (text.trim() === "") return "open";
  const x = parseAnswer(text);
  return x !== null && agrees(x, wanted) ? "right" : "wrong";
}

/** The first cell, in the order in which the definitions compute them, whose answer is wrong. */
export function firstWrong(
  cells: readonly Cell[],
  statements: readonly Statement[],
  mark: (cell: Cell) => Mark,
): Cell | null {
  const turn = new Map(statements.map(({ target, face }, at) => [face ? `${target}.${face}` : target, at]));
  const ordered = [...cells].sort((a, b) => (turn.get(a.key) ?? -1) - (turn.get(b.key) ?? -1) || a.flat - b.flat);
  return ordered.find((cell) => mark(cell) === "wrong") ?? null;
}
