/**
 * The value of a definition: a tree compiled, for fixed shapes, to a list of loops over preallocated numbers.
 *
 * No code is generated (the page's policy forbids it); compiling builds closures. Softmax and log-sum-exp are recognised
 * and computed without overflow. Inside a condition the branch that is not taken may look a table up out of range or
 * overflow; results are selected, never multiplied by zero, so nothing of it can leak.
 */
import type { Axis, Expr } from "../data/types.ts";
import { type Arr, type Pool, cells, dense, loopOver, offsets, stridesAlong, union } from "./arrays.ts";
import { type Step, contract, elementwise, pack, reduceOver } from "./contract.ts";
import { UNARY } from "./kernels.ts";
import { freeLetters, logSumExp, productOf, softmaxLetter } from "./tree.ts";

/** A definition cannot be computed from these operands. */
export class EvaluationError extends Error {}

/** Where a definition finds its operands; the arrays stay the same, their contents may change between runs. */
export interface Operands {
  tensor(name: string, face: string): { data: Float64Array; shape: readonly number[] };
  /** A size or a hyperparameter, as an array of one cell. */
  scalar(name: string): Float64Array;
}

type Scope = ReadonlyMap<string, number>;

/** Compiles `expr` so that running the steps puts (or, with `adds`, adds) its value, row-major over `letters`, in `target`. */
export function compile(
  expr: Expr, letters: readonly Axis[], target: Float64Array, adds: boolean, operands: Operands, pool: Pool,
): Step[] {
  const compiler = new Compiler(operands, pool);
  const scope = new Map(letters.map(([letter, dimension]) => [letter, operands.scalar(dimension)[0]]));
  const value = compiler.node(expr, scope, false);
  const names = [...scope.keys()];
  const sizes = [...scope.values()];
  const loop = loopOver(names, sizes, [dense(target, names, sizes), value]);
  const [from, step] = [loop.starts[1], loop.steps[1]];
  compiler.steps.push(() => {
    for (let k = 0, o = 0; k < loop.outer; k++) {
      let i = from[k];
      if (adds) for (let n = 0; n < loop.inner; n++, i += step) target[o++] += value.data[i];
      else for (let n = 0; n < loop.inner; n++, i += step) target[o++] = value.data[i];
    }
  });
  pool.release();
  return compiler.steps;
}

class Compiler {
  readonly steps: Step[] = [];
  private readonly known = new Map<string, Arr>();

  constructor(private readonly operands: Operands, private readonly pool: Pool) {}

  /** The value of `e`; `guarded` is true inside a condition, where lookups may miss. Equal subtrees are computed once. */
  node(e: Expr, scope: Scope, guarded: boolean): Arr {
    if (e[0] === "num") return constant(e[1]);
    if (e[0] === "const") return constant(e[1] === "pi" ? Math.PI : Infinity);
    if (e[0] === "scalar") return { data: this.operands.scalar(e[1]), offset: 0, letters: [], sizes: [], strides: [] };
    const name = JSON.stringify([e, guarded, freeLetters(e).map((letter) => scope.get(letter))]);
    let value = this.known.get(name);
    if (!value) {
      value = this.fresh(e, scope, guarded);
      this.known.set(name, value);
    }
    return value;
  }

  private fresh(e: Expr, scope: Scope, guarded: boolean): Arr {
    const of = (part: Expr): Arr => this.node(part, scope, guarded);
    switch (e[0]) {
      case "idx": {
        const size = sizeIn(scope, e[1]);
        return dense(Float64Array.from({ length: size }, (_, k) => k), [e[1]], [size]);
      }
      case "ref":
        return this.reference(e, scope, guarded);
      case "neg":
        return this.unary("neg", of(e[1]));
      case "add":
        return this.sum((e.slice(1) as Expr[]), of);
      case "mul":
        return this.fold("mul", (e.slice(1) as Expr[]).map(of));
      case "div":
        return this.softmax(e, scope, guarded) ?? elementwise("div", of(e[1]), of(e[2]), this.pool, this.steps);
      case "pow":
        return elementwise("pow", of(e[1]), of(e[2]), this.pool, this.steps);
      case "cmp":
        return elementwise(e[1], of(e[2]), of(e[3]), this.pool, this.steps);
      case "bool": {
        const parts = (e.slice(2) as Expr[]).map(of);
        return e[1] === "not" ? this.unary("not", parts[0]) : this.fold(e[1], parts);
      }
      case "cond":
        return this.select(of(e[1]), this.node(e[2], scope, true), this.node(e[3], scope, true));
      case "fn":
        return this.call(e, scope, guarded);
      case "reduce":
        return this.reduction(e, scope, guarded);
      default:
        throw new EvaluationError(`unknown node ${JSON.stringify(e)}`);
    }
  }

  private unary(name: string, x: Arr): Arr {
    const op = UNARY[name];
    if (!op) throw new EvaluationError(`unknown function ${name}`);
    const out = dense(this.pool.take(cells(x.sizes)), x.letters, x.sizes);
    const loop = loopOver(x.letters, x.sizes, [out, x]);
    const [from, step] = [loop.starts[1], loop.steps[1]];
    this.steps.push(() => {
      for (let k = 0, o = 0; k < loop.outer; k++) {
        for (let n = 0, i = from[k]; n < loop.inner; n++, i += step) out.data[o++] = op(x.data[i]);
      }
    });
    return out;
  }

  private fold(op: string, parts: readonly Arr[]): Arr {
    let total = parts[0];
    for (const part of parts.slice(1)) total = elementwise(op, total, part, this.pool, this.steps);
    return total;
  }

  /** Terms from left to right; a negated term is subtracted. */
  private sum(terms: readonly Expr[], of: (part: Expr) => Arr): Arr {
    let total = of(terms[0]);
    for (const term of terms.slice(1)) {
      const [op, part] = term[0] === "neg" ? (["sub", term[1]] as const) : (["add", term] as const);
      total = elementwise(op, total, of(part), this.pool, this.steps);
    }
    return total;
  }

  private select(test: Arr, then: Arr, other: Arr): Arr {
    const { letters, sizes } = union([test, then, other]);
    const out = dense(this.pool.take(cells(sizes)), letters, sizes);
    const loop = loopOver(letters, sizes, [out, test, then, other]);
    const [, t, a, b] = loop.starts;
    const [, st, sa, sb] = loop.steps;
    this.steps.push(() => {
      for (let k = 0, o = 0; k < loop.outer; k++) {
        for (let n = 0, x = t[k], y = a[k], z = b[k]; n < loop.inner; n++, x += st, y += sa, z += sb) {
          out.data[o++] = test.data[x] !== 0 ? then.data[y] : other.data[z];
        }
      }
    });
    return out;
  }

  /** A cell (a view, nothing is copied) or a lookup through integer tables. */
  private reference(e: Expr & ["ref", ...unknown[]], scope: Scope, guarded: boolean): Arr {
    const [, name, face, indices] = e as Extract<Expr, ["ref", ...unknown[]]>;
    const { data, shape } = this.operands.tensor(name, face);
    if (shape.length !== indices.length) {
      throw new EvaluationError(`${name} has ${shape.length} axes, read with ${indices.length} indices`);
    }
    const strides = dense(data, shape.map(String), shape).strides;
    if (!indices.every((index) => index[0] === "idx")) return this.lookup(name, data, shape, indices, scope, guarded);
    const along = new Map<string, number>();
    indices.forEach((index, axis) => {
      const letter = index[1] as string;
      if (sizeIn(scope, letter) !== shape[axis]) {
        throw new EvaluationError(`${name} has shape ${shape.join("×")}, but ${letter} runs over ${sizeIn(scope, letter)}`);
      }
      along.set(letter, (along.get(letter) ?? 0) + strides[axis]);
    });
    const letters = [...along.keys()];
    return { data, offset: 0, letters, sizes: letters.map((letter) => sizeIn(scope, letter)), strides: [...along.values()] };
  }

  private lookup(
    name: string, data: Float64Array, shape: readonly number[], indices: readonly Expr[], scope: Scope, guarded: boolean,
  ): Arr {
    const strides = dense(data, shape.map(String), shape).strides;
    const tables = indices.map((index) => this.node(index, scope, guarded));
    const searched = union(tables.filter((_, axis) => indices[axis][0] !== "idx"));
    const plain = union(tables.filter((table, axis) => indices[axis][0] === "idx" && !searched.letters.includes(table.letters[0])));
    const inner = offsets(plain.sizes, plain.letters.map((letter) => strides[indices.findIndex((index) => index[0] === "idx" && index[1] === letter)]));
    const places = cells(searched.sizes);
    const lookups = tables
      .map((table, axis) => ({ table, size: shape[axis], stride: strides[axis], at: offsets(searched.sizes, stridesAlong(table, searched.letters), table.offset) }))
      .filter(({ table }) => table.letters.every((letter) => searched.letters.includes(letter)));
    const out = dense(this.pool.take(places * inner.length), [...searched.letters, ...plain.letters], [...searched.sizes, ...plain.sizes]);
    this.steps.push(() => {
      for (let k = 0, o = 0; k < places; k++) {
        let from = 0;
        for (const { table, size, stride, at } of lookups) {
          const index = table.data[at[k]];
          const inside = index >= 0 && index < size;
          if (!inside && !guarded) throw new EvaluationError(`${name}: index ${index} of an axis of ${size}`);
          from += inside ? index * stride : 0;
        }
        for (let n = 0; n < inner.length; n++) out.data[o++] = data[from + inner[n]];
      }
    });
    return out;
  }

  private call(e: Extract<Expr, ["fn", ...unknown[]]>, scope: Scope, guarded: boolean): Arr {
    const stable = logSumExp(e);
    if (stable) {
      const inside = new Map([...scope, ...this.loopSizes(stable.loops)]);
      return this.shifted(this.node(stable.f, inside, guarded), stable.loops.map(([letter]) => letter), guarded, false);
    }
    const parts = (e.slice(2) as Expr[]).map((part) => this.node(part, scope, guarded));
    return e[1] === "min" || e[1] === "max" ? this.fold(e[1], parts) : this.unary(e[1], parts[0]);
  }

  private softmax(e: Extract<Expr, ["div", ...unknown[]]>, scope: Scope, guarded: boolean): Arr | null {
    const letter = softmaxLetter(e);
    if (letter === null) return null;
    const over = e[1] as Extract<Expr, ["fn", ...unknown[]]>;
    return this.shifted(this.node(over[2] as Expr, scope, guarded), [letter], guarded, true);
  }

  /** Softmax (`weights`) or log-sum-exp of `f` along `along`, from `f` minus its largest value. */
  private shifted(f: Arr, along: readonly string[], guarded: boolean, weights: boolean): Arr {
    const kept = f.letters.filter((letter) => !along.includes(letter));
    const order = [...kept, ...f.letters.filter((letter) => along.includes(letter))];
    const x = pack(f, order, this.pool, this.steps);
    const rows = cells(x.sizes.slice(0, kept.length));
    const length = cells(x.sizes) / rows;
    const out = weights
      ? dense(this.pool.take(rows * length), order, x.sizes)
      : dense(this.pool.take(rows), kept, x.sizes.slice(0, kept.length));
    this.steps.push(() => {
      for (let row = 0; row < rows; row++) {
        const from = x.offset + row * length;
        let largest = -Infinity;
        for (let k = 0; k < length; k++) largest = Math.max(largest, x.data[from + k]);
        if (largest === -Infinity && !guarded) throw new EvaluationError("a softmax over a row in which nothing is allowed");
        let total = 0;
        for (let k = 0; k < length; k++) total += Math.exp(x.data[from + k] - largest);
        if (!weights) out.data[row] = Math.log(total) + largest;
        else for (let k = 0; k < length; k++) out.data[row * length + k] = Math.exp(x.data[from + k] - largest) / total;
      }
    });
    return out;
  }

  private loopSizes(loops: readonly Axis[]): Map<string, number> {
    return new Map(loops.map(([letter, dimension]) => [letter, this.operands.scalar(dimension)[0]]));
  }

  private reduction(e: Extract<Expr, ["reduce", ...unknown[]]>, scope: Scope, guarded: boolean): Arr {
    const [, op, body, loops, where] = e;
    const sizes = this.loopSizes(loops);
    const inside: Scope = new Map([...scope, ...sizes]);
    const letters = [...sizes.keys()];
    if (op === "max") {
      const value = this.node(body, inside, guarded || where !== null);
      const masked = where === null ? value : this.select(this.node(where, inside, guarded), value, constant(-Infinity));
      return reduceOver(masked, letters, this.pool, this.steps, true);
    }
    const total = (where && this.scatter(body, where, letters, inside, guarded)) ?? this.total(body, where, letters, inside, guarded);
    const missing = letters.filter((letter) => !total.had.has(letter)).map((letter) => sizeIn(inside, letter));
    const scale = cells(missing) / (op === "mean" ? cells([...sizes.values()]) : 1);
    return scale === 1 ? total.value : elementwise("mul", total.value, constant(scale), this.pool, this.steps);
  }

  /** The sum and the loop letters that its body had. */
  private total(
    body: Expr, where: Expr | null, letters: readonly string[], scope: Scope, guarded: boolean,
  ): { value: Arr; had: Set<string> } {
    if (where !== null) {
      const value = this.select(this.node(where, scope, guarded), this.node(body, scope, true), constant(0));
      return { value: reduceOver(value, letters, this.pool, this.steps), had: new Set(value.letters) };
    }
    const factors = productOf(body).map((factor) => this.node(factor, scope, guarded));
    const had = new Set(factors.flatMap((factor) => factor.letters));
    const [inner, outer] = [true, false].map((inside) =>
      factors.filter((factor) => factor.letters.some((letter) => letters.includes(letter)) === inside),
    );
    const parts = inner.length > 0 ? [contract(inner, letters, this.pool, this.steps), ...outer] : outer;
    return { value: this.fold("mul", parts), had };
  }

  /**
   * `sum(body for i in n if table[i] == w)` where `w` is free and only the filter reads it: each term is added where it
   * belongs, instead of every cell asking every term. Null where the reduction has another form.
   */
  private scatter(
    body: Expr, where: Expr, letters: readonly string[], scope: Scope, guarded: boolean,
  ): { value: Arr; had: Set<string> } | null {
    if (where[0] !== "cmp" || where[1] !== "==") return null;
    const [a, b] = [where[2], where[3]];
    const [cell, table] = a[0] === "idx" ? [a, b] : [b, a];
    if (cell[0] !== "idx" || letters.includes(cell[1])) return null;
    const target = cell[1];
    if (freeLetters(body).includes(target) || freeLetters(table).includes(target)) return null;
    const [value, index] = [this.node(body, scope, true), this.node(table, scope, guarded)];
    const all = union([index, value]);
    if (letters.some((letter) => !all.letters.includes(letter))) return null;
    const kept = all.letters.filter((letter) => !letters.includes(letter));
    const keptSizes = kept.map((letter) => sizeIn(scope, letter));
    const size = sizeIn(scope, target);
    const block = cells(keptSizes);
    const out = dense(this.pool.take(size * block), [target, ...kept], [size, ...keptSizes]);
    const at = offsets(all.sizes, stridesAlong(index, all.letters), index.offset);
    const from = offsets(all.sizes, stridesAlong(value, all.letters), value.offset);
    const to = offsets(all.sizes, stridesAlong(dense(out.data, kept, keptSizes), all.letters));
    this.steps.push(() => {
      out.data.fill(0);
      for (let k = 0; k < at.length; k++) {
        const place = index.data[at[k]];
        if (place >= 0 && place < size) out.data[place * block + to[k]] += value.data[from[k]];
      }
    });
    return { value: out, had: new Set(letters) };
  }
}

function constant(value: number): Arr {
  return { data: Float64Array.of(value), offset: 0, letters: [], sizes: [], strides: [] };
}

function sizeIn(scope: Scope, letter: string): number {
  const size = scope.get(letter);
  if (size === undefined) throw new EvaluationError(`the letter ${letter} runs over nothing here`);
  return size;
}
