/**
 * The computer inside the page: every quantity of a trace, recomputed from its own definition.
 * A small model is recomputed at every edit, a larger one in slices; one that is too large for that shows the recorded
 * numbers, as far as the page holds them, and takes no edits. What was recorded is decoded when first looked at.
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
import { cells } from "./arrays.ts";
import { magnitudeOf } from "./magnitude.ts";
import { type Passes, type Statements, inSlices, splitStatements, trialPasses, wholePass } from "./passes.ts";
import { NotRecorded, type Pace, type Recorded, Refused, keysIn, linesFrom, paceOf } from "./recorded.ts";
import { Store, type Tensor, compileStatements, evaluateOnce, keyOf } from "./program.ts";
import { namesIn } from "./tree.ts";

export { NotRecorded, Refused } from "./recorded.ts";
export type { CellExplanation, Condition, Contribution, Note, Operand, Where } from "./explanation.ts";

const LOSS = "loss.L";
const [TOKENS, TARGETS, SCORED] = ["embed.t", "loss.y", "loss.scored"];

export interface Sequential {
  /** The loss afterwards. */
  loss: number;
  /** The parameters whose new values differ from those of the joint update. */
  different: string[];
  /** The new values by id. */
  values: Map<string, Float64Array>;
}

export class Engine {
  /** Every key with a value: ids in the order of the header, then `id.grad`, `id.new`, `id.after`. */
  readonly keys: readonly string[];
  readonly pace: Pace;
  /** Ids of the parameters that the update changes. */
  readonly parameters: readonly string[];
  /** Every parameter steps against its own gradient: no moments, no clipping, no decay. */
  readonly plainDescent: boolean;
  private readonly store: Store;
  private readonly infos: Map<string, QuantityInfo>;
  /** Ids from which everything is computed. */
  private readonly leaves: readonly string[];
  private compiled: Step[] | undefined;
  private readonly statements: Statements;
  private compiledUpdate: Step[] | undefined;
  /** Where not everything is computed at once: the lines of the update that recorded numbers give, by key. */
  private readonly lines: ReadonlyMap<string, Statement>;
  private probe: Passes | undefined;
  private explainer: Explainer | undefined;
  private finished = 0;

  /** Throws an `Error` where numbers are missing that the model of this size is computed from. */
  constructor(readonly header: Header, private readonly recorded: Recorded) {
    this.store = new Store(header.scalars);
    this.infos = new Map(header.quantities.map((quantity) => [quantity.id, quantity]));
    const kind = (id: string): string | undefined => this.infos.get(id)?.kind;
    this.statements = splitStatements(header);
    const { forward, backward, update } = this.statements;
    this.parameters = update.map(({ target }) => target).filter((id) => kind(id) === "parameter");
    this.plainDescent = update.every(
      ({ target, expr }) => kind(target) !== "parameter" || namesIn(expr).every((name) => name === target),
    );
    const defined = new Set([...forward, ...update].filter(({ face }) => face === "").map(({ target }) => target));
    this.leaves = header.quantities.map(({ id }) => id).filter((id) => !defined.has(id));
    const missing = this.leaves.find((id) => !recorded.has(id));
    this.pace = paceOf(this.operations(), missing, header.left_out !== undefined);
    this.lines = this.pace === "live" ? new Map() : linesFrom(update, recorded);
    for (const quantity of header.quantities) this.declare(quantity.id, shapeOf(header, quantity));
    this.declare(keyOf(LOSS, "grad"), []);
    for (const { target, face } of [...backward, ...update]) this.declare(keyOf(target, face), this.shape(target));
    for (const { target } of forward) this.declare(keyOf(target, "after"), this.shape(target));
    this.keys = [...this.store.tensors.keys()];
  }

  /** The engine of a recorded trace, ready to be read. */
  static of(trace: Trace): Engine {
    const keys = new Set(trace.keys);
    const engine = new Engine(trace.header, { has: (key) => keys.has(key), get: (key) => trace.tensor(key) });
    if (engine.pace === "live") engine.recompute();
    return engine;
  }

  /** Makes room for a key; its numbers are the recorded ones until they are computed. */
  private declare(key: string, shape: readonly number[]): void {
    this.store.make(key, shape, () => {
      if (key === keyOf(LOSS, "grad")) return Float64Array.of(1);
      const numbers = this.recorded.get(key);
      if (numbers && numbers.length !== cells(shape)) throw new Error(`The trace holds a damaged ${key}.`);
      if (numbers) return this.pace === "recorded" ? numbers : numbers.slice();
      const line = this.lines.get(key);
      if (line) return evaluateOnce(line.expr, line.letters, this.store, keyOf);
      if (this.pace === "recorded") throw new NotRecorded(key);
      return new Float64Array(cells(shape));
    });
  }

  private get steps(): Step[] {
    this.mayEdit();
    return (this.compiled ??= wholePass(this.statements, this.parameters, this.store));
  }

  /** The lines of the update alone, over the same tensors. */
  private get updateSteps(): Step[] {
    this.mayEdit();
    return (this.compiledUpdate ??= compileStatements(this.statements.update, this.store, keyOf));
  }

  /** Multiply-adds of one recomputation, roughly. */
  operations(): number {
    const sizes = this.parameters.map((id) => cells(shapeOf(this.header, this.quantity(id))));
    return 6 * sizes.reduce((total, size) => total + size, 0) * (this.header.scalars.n ?? 1);
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

  /** Whether the run has this key. */
  has(key: string): boolean {
    return this.store.tensors.has(key);
  }

  /** Whether its numbers are here: computed, or recorded in the page. */
  holds(key: string): boolean {
    if (!this.has(key)) return false;
    if (this.pace === "live" || this.finished > 0 || key === keyOf(LOSS, "grad")) return true;
    return this.recorded.has(key) || this.lines.has(key);
  }

  /** The numbers of a key, row-major; throws for a key without value, `NotRecorded` for one that the page lacks. */
  value(key: string): Float64Array {
    return this.tensor(key)?.data ?? this.store.get(key).data;
  }

  private tensor(key: string): Tensor | undefined {
    if (this.has(key) && !this.holds(key)) throw new NotRecorded(key);
    return this.store.tensors.get(key);
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

  /** The recorded numbers of a leaf that may be changed. */
  private leaf(id: string): Float64Array | undefined {
    return this.pace !== "recorded" && this.leaves.includes(id) ? this.recorded.get(id) : undefined;
  }

  private mayEdit(): void {
    if (this.pace === "recorded") throw new Refused("tooLarge", "this model is too large to be recomputed here");
  }

  /** Sets one cell of a leaf. Throws `Refused` for a number that is not finite or a cell that is not there. */
  setCell(id: string, flat: number, x: number): void {
    this.mayEdit();
    const leaf = this.leaf(id);
    if (!leaf || !(flat in leaf)) throw new Refused("noCell", `${id} has no editable cell ${flat}`);
    if (!Number.isFinite(x)) throw new Refused("notFinite", `${x} is not a finite number`);
    this.value(id)[flat] = x;
  }

  setScalar(name: "eta" | "eps", x: number): void {
    this.mayEdit();
    if (!Number.isFinite(x) || x < 0) throw new Refused("notFinite", `${name} must be a finite number, at least 0`);
    this.store.scalar(name)[0] = x;
  }

  /** Sets the token of every row. Throws `Refused` for a wrong count or an id outside the vocabulary. */
  setTokens(ids: readonly number[]): void {
    this.mayEdit();
    const tokens = this.value(TOKENS);
    if (ids.length !== tokens.length) throw new Refused("rowCount", `there are ${tokens.length} rows, not ${ids.length}`);
    ids.forEach((id) => this.checkToken(id));
    tokens.set(ids);
  }

  /** Sets the target of a row; null takes the row out of the loss. Throws `Refused` when no row would be left. */
  setTarget(row: number, id: number | null): void {
    this.mayEdit();
    const [targets, scored] = [this.value(TARGETS), this.value(SCORED)];
    if (!(row in targets)) throw new Refused("noRow", `there is no row ${row}`);
    const last = scored.every((mark, other) => other === row || mark === 0);
    if (id === null && last) throw new Refused("oneRow", "one row must count in the loss");
    if (id !== null) this.checkToken(id);
    targets[row] = id ?? targets[row];
    scored[row] = id === null ? 0 : 1;
  }

  private checkToken(id: number): void {
    if (!Number.isInteger(id) || id < 0 || id >= this.header.vocabulary.length) {
      throw new Refused("noToken", `${id} is not a token id; they run from 0 to ${this.header.vocabulary.length - 1}`);
    }
  }

  /** Whether this cell of a leaf differs from the trace. */
  isEdited(id: string, flat: number): boolean {
    const leaf = this.leaf(id);
    return leaf !== undefined && this.value(id)[flat] !== leaf[flat];
  }

  /** Whether anything differs from the trace. */
  edited(): boolean {
    if (this.pace === "recorded") return false;
    if (Object.entries(this.header.scalars).some(([name, value]) => this.scalar(name) !== value)) return true;
    return this.leaves.some((id) => this.leaf(id)?.some((value, flat) => value !== this.value(id)[flat]));
  }

  /** Back to the leaves and scalars of the trace. */
  reset(): void {
    this.mayEdit();
    for (const id of this.leaves) this.value(id).set(this.leaf(id) ?? []);
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
    if (!(await inSlices(this.steps, signal))) return false;
    this.finished += 1;
    return true;
  }

  // ---- the update

  /** A second set of tensors (`id.probe`) for trying parameters out; compiled when first needed. */
  private passes(): Passes {
    if (this.probe) return this.probe;
    for (const id of this.parameters) this.store.make(`${id}.probe`, this.shape(id));
    this.store.make(`${keyOf(LOSS, "grad")}.probe`, []).data[0] = 1;
    this.probe = trialPasses(this.statements, this.parameters, this.leaves, this.store);
    return this.probe;
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

  /** The slope of the loss along the step, by learning rate. NaN where it cannot be known from what is here. */
  slope(): number {
    const gradients = this.parameters.map((id) => keyOf(id, "grad"));
    if (!gradients.every((key) => this.holds(key))) return NaN;
    if (this.pace === "recorded") {
      const square = (key: string): number => this.value(key).reduce((total, x) => total + x * x, 0);
      return this.plainDescent ? -gradients.reduce((total, key) => total + square(key), 0) : NaN;
    }
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
      tensor: (name) => this.tensor(name),
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

  /** Whether all that these expressions read is here, and not too much of it to go through. */
  ready(exprs: readonly Expr[]): boolean {
    return this.pace !== "recorded" && exprs.flatMap(keysIn).every((key) => this.holds(key));
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
