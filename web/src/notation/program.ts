/** Statements over a store of tensors: compiled once, run often. */
import type { Expr, Axis, Statement } from "../data/types.ts";
import { Pool, cells } from "./arrays.ts";
import type { Step } from "./contract.ts";
import { type Operands, compile } from "./evaluate.ts";

export interface Tensor {
  readonly data: Float64Array;
  shape: readonly number[];
}

/** The key of a tensor: `S`, `S.grad`. */
export function keyOf(id: string, face: string): string {
  return face ? `${id}.${face}` : id;
}

/** Tensors by key and scalars by name. Arrays keep their identity, so compiled statements may hold on to them. */
export class Store {
  readonly tensors = new Map<string, Tensor>();
  private readonly scalars = new Map<string, Float64Array>();
  readonly pool = new Pool();

  constructor(scalars: Readonly<Record<string, number>>) {
    for (const [name, value] of Object.entries(scalars)) this.scalars.set(name, Float64Array.of(value));
  }

  find(name: string): Float64Array | undefined {
    return this.scalars.get(name);
  }

  scalar(name: string): Float64Array {
    const cell = this.scalars.get(name);
    if (!cell) throw new Error(`the trace gives no value for ${name}`);
    return cell;
  }

  /** The tensor of `key`; made where it is new, its numbers (zeros, where `source` is not given) when first asked for. */
  make(key: string, shape: readonly number[], source = (): Float64Array => new Float64Array(cells(shape))): Tensor {
    const known = this.tensors.get(key);
    if (known) return known;
    let numbers: Float64Array | undefined;
    const made = {
      shape,
      get data() {
        return (numbers ??= source());
      },
    };
    this.tensors.set(key, made);
    return made;
  }

  get(key: string): Tensor {
    const found = this.tensors.get(key);
    if (!found) throw new Error(`there is no value ${key}`);
    return found;
  }
}

/** Which key a name and a face stand for in one pass: the forward after the update reads `W_Q.new` for `W_Q`. */
export type Naming = (id: string, face: string) => string;

function operandsOf(store: Store, naming: Naming): Operands {
  return { tensor: (id, face) => store.get(naming(id, face)), scalar: (name) => store.scalar(name) };
}

/** The steps that carry out `statements` under a naming; sums of contributions start from zero. */
export function compileStatements(statements: readonly Statement[], store: Store, naming: Naming): Step[] {
  const begun = new Set<string>();
  const operands = operandsOf(store, naming);
  return statements.flatMap((statement) => {
    const key = naming(statement.target, statement.face);
    const shape = statement.letters.map(([, dimension]) => store.scalar(dimension)[0]);
    const target = store.make(key, shape);
    const adds = statement.adds && begun.has(key);
    begun.add(key);
    return compile(statement.expr, statement.letters, target.data, adds, operands, store.pool);
  });
}

/** The present value of one expression. */
export function evaluateOnce(expr: Expr, letters: readonly Axis[], store: Store, naming: Naming): Float64Array {
  const out = new Float64Array(cells(letters.map(([, dimension]) => store.scalar(dimension)[0])));
  for (const step of compile(expr, letters, out, false, operandsOf(store, naming), new Pool())) step();
  return out;
}

/**
 * The backward statements, each parameter's update, all lines of it, right after its last contribution (parameters first
 * in a part).
 */
export function wrongOrder(backward: readonly Statement[], update: readonly Statement[]): Statement[] {
  const parameters = new Set(update.map((rule) => rule.target));
  const consumers = [...new Set(backward.map((statement) => statement.consumer))];
  const ordered = consumers.flatMap((consumer) => {
    const part = backward.filter((statement) => statement.consumer === consumer);
    const moves = (statement: Statement): boolean => parameters.has(statement.target);
    return [...part.filter(moves), ...part.filter((statement) => !moves(statement))];
  });
  return ordered.flatMap((statement, k) => {
    const done = ordered.findLastIndex((other) => other.target === statement.target) === k;
    return [statement, ...(done ? update.filter((rule) => rule.consumer === statement.target) : [])];
  });
}
