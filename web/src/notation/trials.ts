/** Other updates tried out beside the one that was made: a second set of tensors, `id.probe`, and what to run on it. */
import type { Statement } from "../data/types.ts";
import type { Step } from "./contract.ts";
import { type Naming, type Store, compileStatements, keyOf } from "./program.ts";

/** The statements of a run, by what they are for. */
export interface Statements {
  forward: Statement[];
  backward: Statement[];
  update: Statement[];
}

export interface Sequential {
  /** The loss afterwards. */
  loss: number;
  /** The parameters whose new values differ from those of the joint update. */
  different: string[];
  /** The new values by id. */
  values: Map<string, Float64Array>;
}

/** Steps over the second set of tensors. */
export interface Passes {
  forward: Step[];
  wrongOrder: Step[];
}

const SEED = keyOf("loss.L", "grad");

/** Makes the second set of tensors and what runs on it. */
export function compilePasses(
  store: Store, { forward, backward, update }: Statements, parameters: readonly string[], leaves: readonly string[],
): Passes {
  for (const id of parameters) store.make(`${id}.probe`, store.get(id).shape);
  store.make(`${SEED}.probe`, []).data[0] = 1;
  const [moved, given] = [new Set(parameters), new Set(leaves)];
  const lines = new Set(update.flatMap(({ target, consumer }) => (target === consumer ? [] : [target])));
  const own: Naming = (id, face) =>
    face === "new" || moved.has(id) && face === "" ? `${id}.probe` : face === "" && given.has(id) ? id : `${keyOf(id, face)}.probe`;
  // The wrong order of updating reads the forward values of the run, but parameters as they stand. Moments before the
  // step are those of the run, and so is the factor of a clipped gradient, for which all gradients must be known.
  const mixed: Naming = (id, face) => {
    if (lines.has(id) && (face === "new" || !given.has(id))) return `${keyOf(id, face)}.probe`;
    return face === "" && !moved.has(id) ? id : own(id, face);
  };
  return {
    forward: compileStatements(forward, store, own),
    wrongOrder: compileStatements(wrongOrder(backward, update, parameters), store, mixed),
  };
}

/** The sum of gradient times step. */
export function firstOrder(from: Float64Array, gradient: Float64Array, to: Float64Array): number {
  let change = 0;
  for (let k = 0; k < to.length; k++) change += gradient[k] * (to[k] - from[k]);
  return change;
}

/** The sum of squares. */
export function squares(all: readonly Float64Array[]): number {
  return all.reduce((total, each) => total + each.reduce((sum, x) => sum + x * x, 0), 0);
}

/** Whether two outcomes of an update differ by more than rounding. */
export function differ(one: ArrayLike<number>, other: Float64Array): boolean {
  return other.some((x, k) => Math.abs(one[k] - x) > 1e-15 + 1e-12 * Math.abs(x));
}

/** The backward statements, each parameter's update right after its last contribution (parameters first in a part). */
function wrongOrder(
  backward: readonly Statement[], update: readonly Statement[], parameters: readonly string[],
): Statement[] {
  const consumers = [...new Set(backward.map((statement) => statement.consumer))];
  const ordered = consumers.flatMap((consumer) => {
    const part = backward.filter((statement) => statement.consumer === consumer);
    const moves = (statement: Statement): boolean => parameters.includes(statement.target);
    return [...part.filter(moves), ...part.filter((statement) => !moves(statement))];
  });
  return ordered.flatMap((statement, k) => {
    const done = ordered.findLastIndex((other) => other.target === statement.target) === k;
    return [statement, ...(done ? update.filter((rule) => rule.consumer === statement.target) : [])];
  });
}
