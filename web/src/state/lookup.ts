/** A number by its name, as the command line writes it: `W_Q.grad[1,0]`; and what to say where none is meant. */
import type { Text, Words } from "../i18n.ts";
import { flatOf, keyOf, pythonName, splitKey, type AnyFace } from "./keys.ts";
import type { Session } from "./session.ts";
import { headAxis } from "./slices.ts";
import type { Cell } from "./store.ts";

/** Why a name means no number: sentences for the reader. */
export type Miss = readonly [Text, Words][];

const FACES: readonly AnyFace[] = ["", "grad", "new", "after"];
const MOST_NAMES = 3;

/** The cell that `text` names; without indices, the first of its tensor. */
export function lookUp(session: Session, text: string): Cell | Miss {
  const { engine } = session;
  const found = /^\s*([\w.]+?)\s*(?:\[\s*([\d\s,]*)\])?\s*$/.exec(text);
  if (!found) return [["writeLike", { example: exampleName(session) }]];
  const { id: name, face } = splitKey(found[1]);
  const id = engine.resolve(name);
  if (id === undefined) return missOf(session, found[1], name);
  const key = keyOf(id, face);
  if (!engine.has(key)) {
    const names = FACES.map((each) => keyOf(id, each)).filter((each) => engine.has(each));
    return [["noSuchFace", { name: id, names: names.join(", ") }]];
  }
  const shape = engine.shape(key);
  const written = (found[2] ?? "").split(",").filter((part) => part.trim() !== "");
  const index = found[2] ? written.map(Number) : shape.map(() => 0);
  // Where there is one head only, its index may be left out, as in the notes.
  const lone = loneHead(session, id, shape);
  if (index.length === shape.length - 1 && lone >= 0) index.splice(lone, 0, 0);
  if (index.length !== shape.length || index.some((at, axis) => at >= shape[axis])) {
    const first = pythonName(key, shape.map(() => 0));
    if (shape.length === 0) return [["noIndex", { name: key, example: first }]];
    const last = pythonName(key, shape.map((size) => size - 1));
    return [["wrongIndex", { name: key, count: shape.length, example: first, last }]];
  }
  return { key, flat: flatOf(index, shape) };
}

/** A name that the field understands in this run, with as many indices as its tensor has. */
export function exampleName(session: Session): string {
  const { engine } = session;
  const id = engine.parameters.find((each) => each.endsWith(".W_Q")) ?? engine.parameters[0] ?? "loss.L";
  const short = id.slice(id.lastIndexOf(".") + 1);
  const key = keyOf(engine.resolve(short) === id ? short : id, engine.has(keyOf(id, "grad")) ? "grad" : "");
  const shape = engine.shape(id);
  const lone = loneHead(session, id, shape);
  const index = shape.map((size, axis) => (axis === 0 ? Math.min(1, size - 1) : 0));
  return pythonName(
    key,
    index.filter((_, axis) => axis !== lone),
  );
}

function loneHead({ structure }: Session, id: string, shape: readonly number[]): number {
  const quantity = structure.quantity.get(id);
  const axis = quantity ? headAxis(quantity) : -1;
  return axis >= 0 && shape[axis] === 1 ? axis : -1;
}

/** Of a name that means nothing or several: those meant perhaps. `written` is the name with its face. */
function missOf(session: Session, written: string, name: string): Miss {
  const { engine, header } = session;
  const example = exampleName(session);
  const several = header.quantities.filter(({ id }) => id.endsWith(`.${name}`)).map(({ id }) => id);
  if (several.length > 1) return [["severalNames", { name, names: listed(several) }]];
  const bases = [...header.quantities.flatMap((each) => [each.name, each.id]), ...Object.keys(header.aliases)];
  const known = [...new Set(bases)].flatMap((base) => {
    const id = engine.resolve(base) ?? header.quantities.find((each) => each.name === base)?.id;
    return FACES.filter((face) => id !== undefined && engine.has(keyOf(id, face))).map((face) => keyOf(base, face));
  });
  // A right name in a wrong place comes before one spelt alike.
  const last = name.slice(name.lastIndexOf(".") + 1);
  const { face } = splitKey(written);
  const same = header.quantities.filter((each) => each.name === last).map(({ id }) => keyOf(id, face));
  const near = same.length > 0 ? nearest(written, same, written.length) : nearest(written, known);
  const hint: [Text, Words] = near.length > 0 ? ["nearNames", { names: listed(near) }] : ["writeLike", { example }];
  return [["noSuchName", { name: written }], hint];
}

function listed(names: readonly string[]): string {
  return names.slice(0, MOST_NAMES).join(", ") + (names.length > MOST_NAMES ? ", …" : "");
}

/** The known names that differ from the written one in at most `most` letters (a third of them), nearest first. */
function nearest(
  written: string,
  known: readonly string[],
  most = Math.max(1, Math.floor(written.length / 3)),
): string[] {
  return known
    .map((name) => ({ name, far: distance(written.toLowerCase(), name.toLowerCase(), most) }))
    .filter(({ far }) => far <= most)
    .sort((a, b) => a.far - b.far)
    .map(({ name }) => name)
    .slice(0, MOST_NAMES);
}

/** How many letters must be put in, left out or changed; something above `most` where it is more. */
function distance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let row = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1;
      next.push(Math.min(next[j - 1] + 1, row[j] + 1, row[j - 1] + change));
    }
    row = next;
  }
  return row[b.length];
}
