/**
 * Addresses that bring a reader back: `#zh-6.3&hull:ex.S=1,0,0` is section 6.3 in Chinese with three numbers changed.
 *
 * Each change is `SOURCE:LEAF=NUMBERS`, the whole leaf row by row; of a run, `eta` may be changed too.
 */
import type { Language } from "../data/types.ts";
import type { Engine } from "../notation/engine.ts";

export interface Address {
  language: Language;
  /** `6.3`, `6`, or "" for the contents. */
  section: string;
  changes: Change[];
}

export interface Change {
  /** An example or a run. */
  source: string;
  /** The leaf, or `eta`. */
  name: string;
  numbers: number[];
}

const PLACE = /^(en|zh)(?:-(\d+(?:\.\d+)?))?$/;
const CHANGE = /^([\w-]+):([\w.]+)=([-+\d.e,]+)$/;

/** What a fragment says; null where it names no place of the book. Changes that cannot be read are left out. */
export function parseAddress(hash: string): Address | null {
  const [place, ...rest] = decoded(hash.replace(/^#/, "")).split("&");
  const found = PLACE.exec(place);
  if (!found) return null;
  const changes = rest.flatMap((text): Change[] => {
    const [, source, name, list] = CHANGE.exec(text) ?? [];
    if (source === undefined) return [];
    const numbers = list.split(",").map((each) => (each === "" ? NaN : Number(each)));
    return numbers.every(Number.isFinite) ? [{ source, name, numbers }] : [];
  });
  return { language: found[1] as Language, section: found[2] ?? "", changes };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A lone percent sign, typed by hand.
    return text;
  }
}

export function addressText({ language, section, changes }: Address): string {
  const place = section === "" ? language : `${language}-${section}`;
  return `#${[place, ...changes.map(({ source, name, numbers }) => `${source}:${name}=${numbers.join(",")}`)].join("&")}`;
}

/** What differs from the trace: whole leaves of numbers in which a cell was changed, and the learning rate. */
export function changesOf(source: string, engine: Engine): Change[] {
  if (!engine.edited()) return [];
  const leaves = engine.header.quantities.filter(
    ({ id, editable }) => editable && engine.value(id).some((_, flat) => engine.isEdited(id, flat)),
  );
  const changes = leaves.map(({ id }) => ({ source, name: id, numbers: [...engine.value(id)] }));
  const { eta } = engine.header.scalars;
  if (eta !== undefined && engine.scalar("eta") !== eta) changes.push({ source, name: "eta", numbers: [engine.scalar("eta")] });
  return changes;
}

/** Puts changes in; what does not fit (another count, not a leaf) is left out. Whether anything was put in. */
export function applyChanges(engine: Engine, changes: readonly Change[]): boolean {
  let changed = false;
  for (const { name, numbers } of changes) {
    if (name === "eta" && numbers.length === 1 && numbers[0] >= 0 && "eta" in engine.header.scalars) {
      engine.setScalar("eta", numbers[0]);
      changed = true;
    } else if (isNumbersLeaf(engine, name) && engine.value(name).length === numbers.length) {
      numbers.forEach((x, flat) => engine.setCell(name, flat, x));
      changed = true;
    }
  }
  return changed;
}

/** A leaf that takes any number: tokens and marks of rows do not. */
function isNumbersLeaf(engine: Engine, id: string): boolean {
  return engine.header.quantities.some((each) => each.id === id && each.editable);
}
