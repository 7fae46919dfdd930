/** Who reads a cell, and the way from a cell to the loss: cells as neighbours in the dataflow. */
import type { Axis, Expr, Header, Statement } from "../data/types.ts";
import type { Engine } from "../notation/engine.ts";
import type { CellExplanation } from "../notation/explanation.ts";
import { NotRecorded } from "../notation/recorded.ts";
import { children } from "../notation/tree.ts";
import { flatOf, indexOf, keyOf, splitKey, type AnyFace } from "./keys.ts";
import type { Cell } from "./store.ts";
import { refsOf, targetKey, type Ref, type Structure } from "./structure.ts";

/** What is needed to look around: the trace's header, its structure, the current numbers. */
export interface Surroundings {
  header: Header;
  structure: Structure;
  engine: Engine;
}

/** A tensor whose cells read the cell asked about, with the positions that do. */
export interface Readers {
  key: string;
  statement: number;
  cells: number[];
}

type Letters = Record<string, number>;

/** An index or a condition at given letters: integers and yes (1) or no (0). `null` where letters are missing. */
function decide(expr: Expr, letters: Letters, engine: Engine): number | null {
  switch (expr[0]) {
    case "num":
      return expr[1];
    case "scalar":
      return engine.scalar(expr[1]);
    case "idx":
      return letters[expr[1]] ?? null;
    case "ref": {
      const index = expr[3].map((part) => decide(part, letters, engine));
      if (index.some((each) => each === null)) return null;
      const key = keyOf(expr[1], expr[2]);
      return engine.value(key)[flatOf(index as number[], engine.shape(key))] ?? null;
    }
    case "cmp":
      return compare(expr[1], decide(expr[2], letters, engine), decide(expr[3], letters, engine));
    case "bool": {
      const parts = children(expr).map((part) => decide(part, letters, engine));
      if (parts.includes(null)) return null;
      if (expr[1] === "not") return parts[0] ? 0 : 1;
      return Number(expr[1] === "and" ? parts.every(Boolean) : parts.some(Boolean));
    }
    default:
      return null;
  }
}

function compare(op: string, a: number | null, b: number | null): number | null {
  if (a === null || b === null) return null;
  if (op === "==") return Number(a === b);
  if (op === "!=") return Number(a !== b);
  if (op === "<") return Number(a < b);
  if (op === "<=") return Number(a <= b);
  return Number(op === ">" ? a > b : a >= b);
}

/** The letters at which `ref` reads the cell `index`: every way, given that lookups are searched. */
function lettersReading(ref: Ref, index: number[], sizes: Map<string, number>, engine: Engine): Letters[] {
  let found: Letters[] = [{}];
  ref[3].forEach((expr, axis) => {
    const wanted = index[axis];
    found = found.flatMap((letters) => {
      if (expr[0] === "idx") {
        const already = letters[expr[1]];
        if (already !== undefined) return already === wanted ? [letters] : [];
        return [{ ...letters, [expr[1]]: wanted }];
      }
      return spread(letters, lettersOf(expr), sizes).filter((each) => decide(expr, each, engine) === wanted);
    });
  });
  return found;
}

function lettersOf(expr: Expr): string[] {
  if (expr[0] === "idx") return [expr[1]];
  return [...new Set(children(expr).flatMap(lettersOf))];
}

/** `letters` with every value of the letters it lacks. */
function spread(letters: Letters, wanted: readonly string[], sizes: Map<string, number>): Letters[] {
  let all = [letters];
  for (const letter of wanted) {
    if (letters[letter] !== undefined) continue;
    const size = sizes.get(letter) ?? 0;
    all = all.flatMap((each) => Array.from({ length: size }, (_, value) => ({ ...each, [letter]: value })));
  }
  return all;
}

/** Conditions around each reference of an expression: filters of sums and the branch taken. */
function guarded(expr: Expr, guards: [Expr, boolean][] = []): { ref: Ref; guards: [Expr, boolean][] }[] {
  const own = expr[0] === "ref" ? [{ ref: expr, guards }] : [];
  if (expr[0] === "cond") {
    return [
      ...guarded(expr[1], guards),
      ...guarded(expr[2], [...guards, [expr[1], true]]),
      ...guarded(expr[3], [...guards, [expr[1], false]]),
    ];
  }
  const inner: [Expr, boolean][] = expr[0] === "reduce" && expr[4] ? [...guards, [expr[4], true]] : guards;
  return [...own, ...children(expr).flatMap((part) => guarded(part, inner))];
}

function loopsOf(expr: Expr): Axis[] {
  const own = expr[0] === "reduce" ? expr[3] : [];
  return [...own, ...children(expr).flatMap(loopsOf)];
}

const MOST_WAYS = 4096;

/** Positions of the statement's target whose formula reads `ref` at `index`. */
function targetsReading(statement: Statement, id: string, face: AnyFace, index: number[], engine: Engine): number[] {
  const sizes = new Map<string, number>();
  for (const [letter, size] of [...statement.letters, ...loopsOf(statement.expr)])
    sizes.set(letter, engine.scalar(size));
  const shape = statement.letters.map(([, size]) => engine.scalar(size));
  const found = new Set<number>();
  for (const { ref, guards } of guarded(statement.expr)) {
    if (ref[1] !== id || ref[2] !== face) continue;
    for (const letters of lettersReading(ref, index, sizes, engine)) {
      const free = statement.letters.map(([letter]) => letter);
      for (const each of spread(letters, free, sizes)) {
        if (guards.every(([test, wanted]) => (decide(test, each, engine) ?? Number(wanted)) === Number(wanted))) {
          found.add(
            flatOf(
              free.map((letter) => each[letter]),
              shape,
            ),
          );
        }
        if (found.size >= MOST_WAYS) return [...found];
      }
    }
  }
  return [...found].sort((a, b) => a - b);
}

/** The statements that read a key, with the key each of them makes from it. */
function statementsReading(key: string, around: Surroundings): { statement: number; makes: string; name: string }[] {
  const { id, face } = splitKey(key);
  const { header, structure } = around;
  const kind = structure.quantity.get(id)?.kind;
  const after = face === "after" || face === "new";
  const direct = after ? [] : (structure.readBy.get(key) ?? []);
  const again = after || kind === "input" || kind === "constant" ? (structure.readBy.get(id) ?? []) : [];
  return [
    ...direct.map((statement) => ({ statement, makes: targetKey(header.statements[statement]), name: key })),
    ...again
      .filter((statement) => header.statements[statement].face === "")
      .map((statement) => ({ statement, makes: keyOf(header.statements[statement].target, "after"), name: id })),
  ].filter(({ makes }) => around.engine.has(makes));
}

/** Every cell that reads `cell`, by statement. */
export function readersOf(cell: Cell, around: Surroundings): Readers[] {
  const { engine, header } = around;
  const index = indexOf(cell.flat, engine.shape(cell.key));
  return statementsReading(cell.key, around)
    .map(({ statement, makes, name }) => {
      const { id, face } = splitKey(name);
      return { key: makes, statement, cells: targetsReading(header.statements[statement], id, face, index, engine) };
    })
    .filter((readers) => readers.cells.length > 0);
}

/** Weights that differ by rounding alone are equal: the first of them counts. */
const NEARLY = 1 + 1e-9;

function largest(candidates: Cell[], weight: (cell: Cell) => number): Cell | undefined {
  return candidates.reduce<Cell | undefined>(
    (best, each) => (best === undefined || weight(each) > weight(best) * NEARLY ? each : best),
    undefined,
  );
}

/** The keys from which the loss can be reached, with the number of readings on the shortest way. */
function distances(around: Surroundings, goal: string): Map<string, number> {
  const far = new Map([[goal, 0]]);
  const queue = [goal];
  const face: AnyFace = splitKey(goal).face;
  for (let key = queue.shift(); key !== undefined; key = queue.shift()) {
    const { id } = splitKey(key);
    for (const number of around.structure.madeBy.get(id) ?? []) {
      for (const ref of refsOf(around.header.statements[number].expr)) {
        const parameter = around.structure.quantity.get(ref[1])?.kind === "parameter";
        const next = keyOf(ref[1], face === "after" && parameter ? "new" : face);
        if (ref[2] !== "" || far.has(next)) continue;
        far.set(next, (far.get(key) ?? 0) + 1);
        queue.push(next);
      }
    }
  }
  return far;
}

/** From a value to the loss: at each fork the reader with the largest gradient, of equals the one nearest the loss. */
function wayForward(start: Cell, around: Surroundings): Cell[] {
  const goal = keyOf("loss.L", splitKey(start.key).face === "" ? "" : "after");
  const far = distances(around, goal);
  const weight = ({ key, flat }: Cell): number => {
    const gradient = keyOf(splitKey(key).id, "grad");
    return around.engine.holds(gradient) ? Math.abs(around.engine.value(gradient)[flat]) : 0;
  };
  const way = [start];
  for (let at = start; at.key !== goal && way.length < 200;) {
    const next = largest(
      readersOf(at, around)
        .filter(({ key }) => far.has(key))
        .sort((a, b) => (far.get(a.key) ?? 0) - (far.get(b.key) ?? 0))
        .flatMap(({ key, cells }) => cells.map((flat) => ({ key, flat }))),
      weight,
    );
    if (!next) break;
    way.push(next);
    at = next;
  }
  return way;
}

/** How a cell came about, or the key of what that reads and the page does not hold. */
export function tryToExplain(engine: Engine, cell: Cell): CellExplanation | string {
  try {
    return engine.arithmetic(cell.key, cell.flat);
  } catch (error) {
    if (error instanceof NotRecorded) return error.key;
    throw error;
  }
}

/** From a gradient back to the loss it came from: at each step the largest gradient among what it reads. */
function wayBack(start: Cell, around: Surroundings): Cell[] {
  const way = [start];
  for (let at = start; at.key !== "loss.L.grad" && way.length < 200;) {
    const explained = tryToExplain(around.engine, at);
    if (typeof explained === "string") break;
    const gradients = explained.operands.filter(({ key }) => splitKey(key).face === "grad");
    const next = largest(gradients, ({ key, flat }) => Math.abs(around.engine.value(key)[flat]));
    if (!next) break;
    at = { key: next.key, flat: next.flat };
    way.push(at);
  }
  const whole = way[way.length - 1].key === "loss.L.grad";
  if (!whole && around.engine.has("loss.L")) way.push({ key: "loss.L", flat: 0 });
  return way;
}

/** The way from a cell to the loss, the cell itself first. */
export function wayToLoss(cell: Cell, around: Surroundings): Cell[] {
  return splitKey(cell.key).face === "grad" ? wayBack(cell, around) : wayForward(cell, around);
}
