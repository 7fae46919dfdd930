/** Sums of products: the plan that turns `sum(a*b*c for ...)` into matrix products. */
import { type Arr, type Pool, cells, dense, liesDense, loopOver, stridesAlong, union, offsets } from "./arrays.ts";
import { BINARY, matmul, matmulTransposed } from "./kernels.ts";

export type Step = () => void;

/** `a op b`, cell by cell over the letters of both. */
export function elementwise(op: string, a: Arr, b: Arr, pool: Pool, steps: Step[], shape = union([a, b])): Arr {
  const out = dense(pool.take(cells(shape.sizes)), shape.letters, shape.sizes);
  const loop = loopOver(shape.letters, shape.sizes, [out, a, b]);
  const kernel = BINARY[op];
  const [, first, second] = loop.starts;
  const [, stepA, stepB] = loop.steps;
  steps.push(() => {
    for (let k = 0; k < loop.outer; k++) {
      kernel(out.data, k * loop.inner, a.data, first[k], stepA, b.data, second[k], stepB, loop.inner);
    }
  });
  return out;
}

/** `x` as a dense array over `letters`; copied only where it does not lie so already. */
export function pack(x: Arr, letters: readonly string[], pool: Pool, steps: Step[]): Arr {
  const sizes = letters.map((letter) => x.sizes[x.letters.indexOf(letter)]);
  if (liesDense(x, letters)) return { data: x.data, offset: x.offset, letters, sizes, strides: stridesAlong(x, letters) };
  const out = dense(pool.take(cells(sizes)), letters, sizes);
  const loop = loopOver(letters, sizes, [out, x]);
  const step = loop.steps[1];
  const starts = loop.starts[1];
  steps.push(() => {
    for (let k = 0, o = 0; k < loop.outer; k++) {
      for (let n = 0, i = starts[k]; n < loop.inner; n++, i += step) out.data[o++] = x.data[i];
    }
  });
  return out;
}

/** The sum (or the largest) of `x` over `letters`. */
export function reduceOver(x: Arr, letters: readonly string[], pool: Pool, steps: Step[], largest = false): Arr {
  const gone = x.letters.filter((letter) => letters.includes(letter));
  if (gone.length === 0) return x;
  const kept = x.letters.filter((letter) => !letters.includes(letter));
  const sizeOf = (letter: string): number => x.sizes[x.letters.indexOf(letter)];
  const sizes = kept.map(sizeOf);
  const out = dense(pool.take(cells(sizes)), kept, sizes);
  const outer = offsets(sizes, stridesAlong(x, kept), x.offset);
  const inner = offsets(gone.map(sizeOf), stridesAlong(x, gone));
  steps.push(() => {
    for (let k = 0; k < outer.length; k++) {
      const from = outer[k];
      let total = largest ? -Infinity : 0;
      if (largest) {
        for (let n = 0; n < inner.length; n++) {
          const value = x.data[from + inner[n]];
          if (value > total || value !== value) total = value;
        }
      } else for (let n = 0; n < inner.length; n++) total += x.data[from + inner[n]];
      out.data[k] = total;
    }
  });
  return out;
}

/** `sum(a*b)` over the letters `summed`, which both have. */
function product(a: Arr, b: Arr, summed: readonly string[], pool: Pool, steps: Step[]): Arr {
  if (summed.length === 0) return elementwise("mul", a, b, pool, steps);
  const batch = a.letters.filter((letter) => b.letters.includes(letter) && !summed.includes(letter));
  const rows = a.letters.filter((letter) => !b.letters.includes(letter));
  const columns = b.letters.filter((letter) => !a.letters.includes(letter));
  const size = (letters: readonly string[]): number =>
    cells(letters.map((letter) => (a.letters.includes(letter) ? a.sizes[a.letters.indexOf(letter)] : b.sizes[b.letters.indexOf(letter)])));
  const [batches, M, K, N] = [batch, rows, summed, columns].map(size);
  const transposed = liesDense(b, [...batch, ...columns, ...summed]);
  const left = pack(a, [...batch, ...rows, ...summed], pool, steps);
  const right = pack(b, transposed ? [...batch, ...columns, ...summed] : [...batch, ...summed, ...columns], pool, steps);
  const letters = [...batch, ...rows, ...columns];
  const out = dense(pool.take(batches * M * N), letters, letters.map((letter) => size([letter])));
  const multiply = transposed ? matmulTransposed : matmul;
  steps.push(() => multiply(out.data, left.data, left.offset, right.data, right.offset, batches, M, K, N));
  return out;
}

/** The sum over `loops` of the product of `factors`; every loop letter occurs in some factor. */
export function contract(factors: readonly Arr[], loops: readonly string[], pool: Pool, steps: Step[]): Arr {
  let open = factors.map((factor, at) => {
    // A letter that only this factor has is summed out before anything is multiplied.
    const own = factor.letters.filter(
      (letter) => loops.includes(letter) && factors.every((other, k) => k === at || !other.letters.includes(letter)),
    );
    return own.length > 0 ? reduceOver(factor, own, pool, steps) : factor;
  });
  while (open.length > 1) {
    const [i, j] = cheapestPair(open);
    const rest = open.filter((_, k) => k !== i && k !== j);
    const summed = open[i].letters.filter(
      (letter) =>
        loops.includes(letter) && open[j].letters.includes(letter) && rest.every((other) => !other.letters.includes(letter)),
    );
    let joined = product(open[i], open[j], summed, pool, steps);
    const done = joined.letters.filter((letter) => loops.includes(letter) && rest.every((other) => !other.letters.includes(letter)));
    if (done.length > 0) joined = reduceOver(joined, done, pool, steps);
    open = [joined, ...rest];
  }
  return open[0];
}

/** The two factors whose product ranges over the fewest cells. */
function cheapestPair(factors: readonly Arr[]): [number, number] {
  let best: [number, number] = [0, 1];
  let least = Infinity;
  for (let i = 0; i < factors.length; i++) {
    for (let j = i + 1; j < factors.length; j++) {
      const cost = cells(union([factors[i], factors[j]]).sizes);
      if (cost < least) [least, best] = [cost, [i, j]];
    }
  }
  return best;
}
