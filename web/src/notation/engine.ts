/**
 * The computer inside the page: every quantity of a trace, recomputed from its own definition.
 *
 * Leaves (inputs, parameters, constants) and scalars may be edited; `recompute` then runs forward, gradients, update and
 * the forward pass after the update, in double precision. Numbers that a caller gets are the engine's own arrays: read
 * them, do not write them, and ask again after `recompute`.
 */
import { type Trace, shapeOf } from "../data/trace.ts";
import type { Axis, Expr, Header, QuantityInfo, Statement } from "../data/types.ts";
import { Explainer } from "./cell.ts";
import type { Step } from "./contract.ts";
import type { CellExplanation } from "./explanation.ts";
import { magnitudeOf } from "./magnitude.ts";
import { type Naming, Store, compileStatements, evaluateOnce, keyOf } from "./program.ts";
import { namesIn } from "./tree.ts";

export type { CellExplanation, Condition, Contribution, Note, Operand, Where } from "./explanation.ts";

const LEAVES: readonly string[] = ["input", "parameter", "constant", "optimizer state"];
const OPTIMIZER = "optimizer state";
const LOSS = "loss.L";
const [TOKENS, TARGETS, SCORED] = ["embed.t", "loss.y", "loss.scored"];
/** Multiply-adds of a whole recomputation, about 6 per parameter and row, that still follow a moving finger. */
const LIVE_OPERATIONS = 50e6;
/** Milliseconds of computing before the page gets a turn. */
const SLICE = 8;

export interface Sequential {
  /** The loss afterwards. */
  loss: number;
  /** The parameters whose new values differ from those of the joint update. */
  different: string[];
  /** The new values by id. */
  values: Map<string, Float64Array>;
}

interface Passes {
  forward: Step[];
  wrongOrder: Step[];
}

export class Engine {
  /** Every key with a value: ids in the order of the header, then `id.grad`, `id.new`, `id.after`. */
  readonly keys: readonly string[];
  /** "live": recompute on every edit; "deferred": the model is large, recompute when asked. */
  readonly pace: "live" | "deferred";
  /** Ids of the parameters that the update changes. */
  readonly parameters: readonly string[];
  /** Every parameter steps against its own gradient: no moments, no clipping, no decay. */
  readonly plainDescent: boolean;
  private readonly store: Store;
  private readonly infos: Map<string, QuantityInfo>;
  private readonly recorded = new Map<string, Float64Array>();
  private readonly steps: Step[];
  private readonly statements: { forward: Statement[]; backward: Statement[]; update: Statement[] };
  /** The lines of the optimizer alone, over the same tensors. */
  private readonly updateSteps: Step[];
  private probe: Passes | undefined;
  private explainer: Explainer | undefined;
  private finished = 0;

  constructor(readonly header: Header, leaves: ReadonlyMap<string, Float64Array>) {
    this.store = new Store(header.scalars);
    this.infos = new Map(header.quantities.map((quantity) => [quantity.id, quantity]));
    const kind = (id: string): string | undefined => this.infos.get(id)?.kind;
    const ofUpdate = ({ face, target }: Statement): boolean => face === "new" || kind(target) === OPTIMIZER;
    const of = (face: string): Statement[] => header.statements.filter((each) => each.face === face && !ofUpdate(each));
    this.statements = { forward: of(""), backward: of("grad"), update: header.statements.filter(ofUpdate) };
    this.parameters = this.statements.update.map(({ target }) => target).filter((id) => kind(id) === "parameter");
    this.plainDescent = this.statements.update.every(
      ({ target, expr }) => kind(target) !== "parameter" || namesIn(expr).every((name) => name === target),
    );
    const forward = new Set(this.statements.forward.map((statement) => statement.target));
    const lines = this.statements.update.filter(({ face }) => face === "").map(({ target }) => target);
    const defined = new Set([...forward, ...lines]);
    for (const quantity of header.quantities) {
      const tensor = this.store.make(quantity.id, shapeOf(header, quantity));
      if (defined.has(quantity.id)) continue;
      const leaf = leaves.get(quantity.id);
      if (!leaf || leaf.length !== tensor.data.length) {
        throw new Error(`The trace holds no numbers for ${quantity.id}, from which everything is computed.`);
      }
      tensor.data.set(leaf);
      this.recorded.set(quantity.id, leaf);
    }
    this.store.make(keyOf(LOSS, "grad"), []).data[0] = 1;
    this.steps = this.compileAll(forward);
    this.updateSteps = compileStatements(this.statements.update, this.store, keyOf);
    this.keys = [...this.store.tensors.keys()];
    this.pace = this.operations() <= LIVE_OPERATIONS ? "live" : "deferred";
  }

  /** The engine of a recorded trace. */
  static of(trace: Trace): Engine {
    const leaves = new Map<string, Float64Array>();
    for (const { id, kind } of trace.header.quantities) {
      const cells = LEAVES.includes(kind) ? trace.tensor(id) : undefined;
      if (cells) leaves.set(id, cells);
    }
    return new Engine(trace.header, leaves);
  }

  private compileAll(defined: ReadonlySet<string>): Step[] {
    const { forward, backward, update } = this.statements;
    const updated = new Set(this.parameters);
    const after: Naming = (id, face) => (face ? keyOf(id, face) : updated.has(id) ? keyOf(id, "new") : defined.has(id) ? keyOf(id, "after") : id);
    return [
      ...compileStatements([...forward, ...backward, ...update], this.store, keyOf),
      ...compileStatements(forward, this.store, after),
    ];
  }

  /** Multiply-adds of one recomputation, roughly. */
  private operations(): number {
    const cells = this.parameters.reduce((total, id) => total + this.store.get(id).data.length, 0);
    return 6 * cells * (this.header.scalars.n ?? 1);
  }

  // ---- reading

  /** Counts finished recomputations: a view that remembers it knows whether numbers changed. */
  get version(): number {
    return this.finished;
  }

  quantity(id: string): QuantityInfo {
    const info = this.infos.get(id);
    if (!info) throw new Error(`there is no quantity ${id}`);
    return info;
  }

  /** The id that "W_Q", "h" or an id means; undefined where it is unknown or means several. */
  resolve(name: string): string | undefined {
    if (this.infos.has(name)) return name;
    if (Object.hasOwn(this.header.aliases, name)) return this.header.aliases[name];
    const ends = [...this.infos.keys()].filter((id) => id.endsWith(`.${name}`));
    return ends.length === 1 ? ends[0] : undefined;
  }

  /** The id and the face of a key. */
  split(key: string): { id: string; face: "" | "grad" | "new" | "after" } {
    if (this.infos.has(key)) return { id: key, face: "" };
    const at = key.lastIndexOf(".");
    const face = key.slice(at + 1);
    if (face !== "grad" && face !== "new" && face !== "after") throw new Error(`there is no value ${key}`);
    return { id: key.slice(0, at), face };
  }

  has(key: string): boolean {
    return this.store.tensors.has(key);
  }

  /** The numbers of a key, row-major; throws for a key without value. */
  value(key: string): Float64Array {
    return this.store.get(key).data;
  }

  /** Cells along each axis. */
  shape(key: string): readonly number[] {
    return this.store.get(key).shape;
  }

  /** A size (`d_k`) or hyperparameter (`eta`). */
  scalar(name: string): number {
    return this.store.scalar(name)[0];
  }

  tokens(): number[] {
    return [...this.value(TOKENS)];
  }

  /** The target of each row, null where the row does not count in the loss. */
  targets(): (number | null)[] {
    const scored = this.has(SCORED) ? this.value(SCORED) : null;
    return [...this.value(TARGETS)].map((id, row) => (scored === null || scored[row] !== 0 ? id : null));
  }

  // ---- editing; nothing changes before `recompute`

  /** Sets one cell of a leaf. Throws `RangeError` for a number that is not finite or a cell that is not there. */
  setCell(id: string, flat: number, x: number): void {
    const leaf = this.recorded.get(id);
    if (!leaf || !(flat in leaf)) throw new RangeError(`${id} has no editable cell ${flat}`);
    if (!Number.isFinite(x)) throw new RangeError(`${x} is not a finite number`);
    this.value(id)[flat] = x;
  }

  setScalar(name: "eta" | "eps", x: number): void {
    if (!Number.isFinite(x) || x < 0) throw new RangeError(`${name} must be a finite number, at least 0`);
    this.store.scalar(name)[0] = x;
  }

  /** Sets the token of every row. Throws `RangeError` for a wrong count or an id outside the vocabulary. */
  setTokens(ids: readonly number[]): void {
    const tokens = this.value(TOKENS);
    if (ids.length !== tokens.length) throw new RangeError(`there are ${tokens.length} rows, not ${ids.length}`);
    ids.forEach((id) => this.checkToken(id));
    tokens.set(ids);
  }

  /** Sets the target of a row; null takes the row out of the loss. Throws `RangeError` when no row would be left. */
  setTarget(row: number, id: number | null): void {
    const [targets, scored] = [this.value(TARGETS), this.value(SCORED)];
    if (!(row in targets)) throw new RangeError(`there is no row ${row}`);
    if (id === null) {
      if (scored.every((mark, other) => other === row || mark === 0)) throw new RangeError("one row must count in the loss");
      scored[row] = 0;
      return;
    }
    this.checkToken(id);
    targets[row] = id;
    scored[row] = 1;
  }

  private checkToken(id: number): void {
    if (!Number.isInteger(id) || id < 0 || id >= this.header.vocabulary.length) {
      throw new RangeError(`${id} is not a token id; they run from 0 to ${this.header.vocabulary.length - 1}`);
    }
  }

  /** Whether this cell of a leaf differs from the trace. */
  isEdited(id: string, flat: number): boolean {
    const leaf = this.recorded.get(id);
    return leaf !== undefined && this.value(id)[flat] !== leaf[flat];
  }

  /** Whether anything differs from the trace. */
  edited(): boolean {
    if (Object.entries(this.header.scalars).some(([name, value]) => this.scalar(name) !== value)) return true;
    return [...this.recorded].some(([id, leaf]) => leaf.some((value, flat) => value !== this.value(id)[flat]));
  }

  /** Back to the leaves and scalars of the trace. */
  reset(): void {
    for (const [id, leaf] of this.recorded) this.value(id).set(leaf);
    for (const [name, value] of Object.entries(this.header.scalars)) this.store.scalar(name)[0] = value;
  }

  // ---- computing

  /** Forward, gradients, update, forward after. */
  recompute(): void {
    for (const step of this.steps) step();
    this.finished += 1;
  }

  /**
   * The same, a few milliseconds at a time with a turn for the page in between. Resolves to false when `signal` stopped
   * it half-way; numbers are then mixed and another recomputation must follow.
   */
  async recomputeInSlices(signal?: AbortSignal): Promise<boolean> {
    let began = performance.now();
    for (const step of this.steps) {
      step();
      if (performance.now() - began < SLICE) continue;
      await new Promise((resolve) => setTimeout(resolve));
      if (signal?.aborted) return false;
      began = performance.now();
    }
    this.finished += 1;
    return true;
  }

  // ---- the update

  /** A second set of tensors (`id.probe`) for trying parameters out; compiled when first needed. */
  private passes(): Passes {
    if (this.probe) return this.probe;
    for (const id of this.parameters) this.store.make(`${id}.probe`, this.shape(id));
    this.store.make(`${keyOf(LOSS, "grad")}.probe`, []).data[0] = 1;
    const parameters = new Set(this.parameters);
    const lines = new Set(this.statements.update.flatMap(({ target, consumer }) => (target === consumer ? [] : [target])));
    const own: Naming = (id, face) =>
      face === "new" || parameters.has(id) && face === "" ? `${id}.probe` : face === "" && this.recorded.has(id) ? id : `${keyOf(id, face)}.probe`;
    // The wrong order of updating reads the forward values of the run, but parameters as they stand. Moments before the
    // step are those of the run, and so is the factor of a clipped gradient, for which all gradients must be known.
    const mixed: Naming = (id, face) => {
      if (lines.has(id) && (face === "new" || !this.recorded.has(id))) return `${keyOf(id, face)}.probe`;
      return face === "" && !parameters.has(id) ? id : own(id, face);
    };
    this.probe = {
      forward: compileStatements(this.statements.forward, this.store, own),
      wrongOrder: compileStatements(this.wrongOrder(), this.store, mixed),
    };
    return this.probe;
  }

  /** The backward statements, each parameter's update right after its last contribution (parameters first in a part). */
  private wrongOrder(): Statement[] {
    const { backward, update } = this.statements;
    const consumers = [...new Set(backward.map((statement) => statement.consumer))];
    const ordered = consumers.flatMap((consumer) => {
      const part = backward.filter((statement) => statement.consumer === consumer);
      const moves = (statement: Statement): boolean => this.parameters.includes(statement.target);
      return [...part.filter(moves), ...part.filter((statement) => !moves(statement))];
    });
    const steps: Statement[] = [];
    ordered.forEach((statement, k) => {
      steps.push(statement);
      const done = ordered.findLastIndex((other) => other.target === statement.target) === k;
      steps.push(...(done ? update.filter((rule) => rule.consumer === statement.target) : []));
    });
    return steps;
  }

  private lossOf(passes: Passes): number {
    for (const step of passes.forward) step();
    return this.value(`${LOSS}.probe`)[0];
  }

  /** The loss when only these parameters take their new values. */
  lossAfterOnly(ids: readonly string[]): number {
    const passes = this.passes();
    for (const id of this.parameters) this.value(`${id}.probe`).set(this.value(ids.includes(id) ? keyOf(id, "new") : id));
    return this.lossOf(passes);
  }

  /** The loss after the step of the optimizer at another learning rate; never overflows on the way. */
  lossAlong(eta: number): number {
    return this.atRate(eta, () => this.lossAfterOnly(this.parameters));
  }

  /** The slope of the loss along the step, by learning rate: first order per unit of it. */
  slope(): number {
    return this.atRate(1, () => this.parameters.reduce((total, id) => total + this.predicted(id), 0));
  }

  /** What `look` sees when the optimizer steps at `eta`; afterwards all numbers are what they were. */
  private atRate<T>(eta: number, look: () => T): T {
    const rate = this.store.scalar("eta");
    const before = rate[0];
    try {
      rate[0] = eta;
      for (const step of this.updateSteps) step();
      return look();
    } finally {
      rate[0] = before;
      for (const step of this.updateSteps) step();
    }
  }

  /** First-order change of the loss when this parameter is updated: the sum of gradient times step. */
  predicted(id: string): number {
    const [from, gradient, to] = [this.value(id), this.value(keyOf(id, "grad")), this.value(keyOf(id, "new"))];
    let change = 0;
    for (let k = 0; k < to.length; k++) change += gradient[k] * (to[k] - from[k]);
    return change;
  }

  /** The wrong way: each parameter is changed as soon as its gradient is known, and later gradients read the change. */
  sequential(): Sequential {
    const passes = this.passes();
    for (const id of this.parameters) this.value(`${id}.probe`).set(this.value(id));
    for (const step of passes.wrongOrder) step();
    const values = new Map(this.parameters.map((id) => [id, this.value(`${id}.probe`).slice()]));
    const different = this.parameters.filter((id) => {
      const joint = this.value(keyOf(id, "new"));
      return values.get(id)?.some((value, k) => Math.abs(value - joint[k]) > 1e-15 + 1e-12 * Math.abs(joint[k]));
    });
    return { loss: this.lossOf(passes), different, values };
  }

  // ---- explaining

  /** How one cell came about. Throws for an unknown key or cell. */
  arithmetic(key: string, flat: number): CellExplanation {
    this.explainer ??= new Explainer({
      header: this.header,
      tensor: (name) => this.store.tensors.get(name),
      scalar: (name) => this.store.find(name)?.[0],
    });
    const { id, face } = this.split(key);
    return this.explainer.explain(id, face, flat);
  }

  /** The statements that compute a key: a definition, an update, or the contributions to a gradient, with positions. */
  statementsOf(key: string): { statement: Statement; position: number }[] {
    const { id, face } = this.split(key);
    const written = face === "after" ? "" : face;
    return this.header.statements
      .map((statement, position) => ({ statement, position }))
      .filter(({ statement }) => statement.target === id && statement.face === written);
  }

  /** Any expression over the present values (a step of a derivation), row-major over `letters`. */
  evaluate(expr: Expr, letters: readonly Axis[]): Float64Array {
    return evaluateOnce(expr, letters, this.store, keyOf);
  }

  /** The magnitude of each cell: a value below `2^-53` times it is zero up to rounding. Not for `.after` keys. */
  magnitude(key: string): Float64Array {
    const total = new Float64Array(this.value(key).length);
    for (const { statement } of this.statementsOf(key)) {
      const dimensions = new Map(statement.letters);
      const tree = magnitudeOf(statement.expr, (letter) => dimensions.get(letter) ?? letter);
      this.evaluate(tree, statement.letters).forEach((value, k) => (total[k] += Number.isFinite(value) ? value : 0));
    }
    return total;
  }
}
