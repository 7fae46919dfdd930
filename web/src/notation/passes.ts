/** Which statements run over which tensors: the run itself, the run after the update, and trials beside it. */
import type { Header, Statement } from "../data/types.ts";
import type { Step } from "./contract.ts";
import { type Naming, type Store, compileStatements, keyOf, wrongOrder } from "./program.ts";

const OPTIMIZER = "optimizer state";
/** Milliseconds of computing before the page gets a turn. */
const SLICE = 8;

export interface Statements {
  forward: Statement[];
  backward: Statement[];
  /** The lines of the optimizer, up to the new parameters. */
  update: Statement[];
}

/** Steps over a second set of tensors (`id.probe`), for trying parameters out. */
export interface Passes {
  forward: Step[];
  wrongOrder: Step[];
}

/** The statements of a header by what they are for. */
export function splitStatements({ quantities, statements }: Header): Statements {
  const states = new Set(quantities.filter(({ kind }) => kind === OPTIMIZER).map(({ id }) => id));
  const ofUpdate = ({ face, target }: Statement): boolean => face === "new" || states.has(target);
  const of = (face: string): Statement[] => statements.filter((each) => each.face === face && !ofUpdate(each));
  return { forward: of(""), backward: of("grad"), update: statements.filter(ofUpdate) };
}

/** Forward, gradients, update, and forward once more with what was updated. */
export function wholePass({ forward, backward, update }: Statements, parameters: readonly string[], store: Store): Step[] {
  const updated = new Set(parameters);
  const defined = new Set(forward.map((statement) => statement.target));
  const after: Naming = (id, face) => (face ? keyOf(id, face) : updated.has(id) ? keyOf(id, "new") : defined.has(id) ? keyOf(id, "after") : id);
  return [...compileStatements([...forward, ...backward, ...update], store, keyOf), ...compileStatements(forward, store, after)];
}

/** The passes of trials; `leaves` are the ids from which everything is computed. */
export function trialPasses(
  { forward, backward, update }: Statements, names: readonly string[], leafIds: readonly string[], store: Store,
): Passes {
  const [parameters, leaves] = [new Set(names), new Set(leafIds)];
  const lines = new Set(update.flatMap(({ target, consumer }) => (target === consumer ? [] : [target])));
  const own: Naming = (id, face) =>
    face === "new" || parameters.has(id) && face === "" ? `${id}.probe` : face === "" && leaves.has(id) ? id : `${keyOf(id, face)}.probe`;
  // The wrong order of updating reads the forward values of the run, but parameters as they stand. Moments before the
  // step are those of the run, and so is the factor of a clipped gradient, for which all gradients must be known.
  const mixed: Naming = (id, face) => {
    if (lines.has(id) && (face === "new" || !leaves.has(id))) return `${keyOf(id, face)}.probe`;
    return face === "" && !parameters.has(id) ? id : own(id, face);
  };
  return { forward: compileStatements(forward, store, own), wrongOrder: compileStatements(wrongOrder(backward, update), store, mixed) };
}

/** Takes all `steps`, a few milliseconds at a time with a turn for the page in between; false when `signal` stopped it. */
export async function inSlices(steps: readonly Step[], signal?: AbortSignal): Promise<boolean> {
  let began = performance.now();
  for (const step of steps) {
    step();
    if (performance.now() - began < SLICE) continue;
    await new Promise((resolve) => setTimeout(resolve));
    if (signal?.aborted) return false;
    began = performance.now();
  }
  return true;
}
