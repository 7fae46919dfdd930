/** What a page holds of a run that it may be too large to recompute: recorded numbers, and how refusals are told. */
import type { Expr, Statement } from "../data/types.ts";
import { keyOf } from "./program.ts";
import { children } from "./tree.ts";

/** Multiply-adds of a whole recomputation, about 6 per parameter and row, that still follow a moving finger. */
const LIVE_OPERATIONS = 50e6;
/** As many as a reader would wait for after an edit: some seconds. */
const MOST_OPERATIONS = 1e9;

/** "live": recompute on every edit; "deferred": in slices, a moment later; "recorded": never, the model is too large. */
export type Pace = "live" | "deferred" | "recorded";

/**
 * The pace of a run. `missing` is a leaf whose numbers are not there; throws an `Error` where a small run lacks one though
 * its page says of nothing that it was `leftOut`.
 */
export function paceOf(operations: number, missing: string | undefined, leftOut: boolean): Pace {
  if (operations > MOST_OPERATIONS) return "recorded";
  if (missing === undefined) return operations <= LIVE_OPERATIONS ? "live" : "deferred";
  if (leftOut || operations > LIVE_OPERATIONS) return "recorded";
  throw new Error(`The trace holds no numbers for ${missing}, from which everything is computed.`);
}

/** Recorded numbers by key. */
export interface Recorded {
  has(key: string): boolean;
  get(key: string): Float64Array | undefined;
}

/** The page does not hold the numbers of `key`, and does not compute them. */
export class NotRecorded extends Error {
  constructor(readonly key: string) {
    super(`${key} is not recorded`);
  }
}

export type Reason = "tooLarge" | "oneRow" | "noToken" | "noCell" | "notFinite" | "noRow" | "rowCount" | "notLeaf";

/**
 * The lines of an update that can be computed from recorded numbers, by their key: they cost little, so their results
 * need not be recorded too. `update` is in an order in which every line reads only earlier ones.
 */
export function linesFrom(update: readonly Statement[], recorded: Recorded): Map<string, Statement> {
  const lines = new Map<string, Statement>();
  for (const line of update) {
    const ready = keysIn(line.expr).every((key) => recorded.has(key) || lines.has(key));
    if (ready) lines.set(keyOf(line.target, line.face), line);
  }
  return lines;
}

/** An edit that cannot be: why, for programs in English, for readers by `reason`. */
export class Refused extends RangeError {
  constructor(readonly reason: Reason, message: string) {
    super(message);
  }
}

/** The keys that an expression reads. */
export function keysIn(expr: Expr): string[] {
  const own = expr[0] === "ref" ? [keyOf(expr[1], expr[2])] : [];
  return [...own, ...children(expr).flatMap(keysIn)];
}
