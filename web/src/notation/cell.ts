/** How one number came about: a cell of a quantity, of a gradient, or of a parameter after its update. */
import type { Expr, Header, Language } from "../data/types.ts";
import { type Arithmetic, type Formula, type Read, arithmetic } from "./arithmetic.ts";
import { rowMajor } from "./arrays.ts";
import type { CellExplanation, Contribution, Operand, Where } from "./explanation.ts";
import { LatexWriter, TextWriter, WORDS } from "./lines.ts";
import { DIGITS, numberText } from "./numerals.ts";
import { SUM, frameOf, plain } from "./plain.ts";
import { type At, ScalarEvaluator, type Source } from "./scalar.ts";
import { type Style, shortNames, styleOf } from "./symbols.ts";
import { transform } from "./tree.ts";

/** What an explanation needs around it: the engine has it all. */
export interface Around extends Source {
  header: Pick<Header, "quantities" | "scalars" | "statements">;
}

/** One statement worked out: what the lines are written from. */
export interface Part extends Arithmetic {
  consumer: string | null;
}

/** The plain lines of an explanation. `names` shortens ids; `entry` is how the notes write the cell, if they do. */
export function textLines(
  target: { id: string; face: string; index: readonly number[]; value: number; entry?: string },
  parts: readonly Part[], names: ReadonlyMap<string, string>, language: Language, recorded?: number, digits = DIGITS,
): string[] {
  const words = WORDS[language];
  const writer = new TextWriter(names, words, digits);
  const { id, face, index, value, entry } = target;
  const title = plain(["ref", id, face as "", index.map((k): Expr => ["num", k])], frameOf(), names);
  const lines = entry === undefined ? [] : [`${title}  (${entry})`];
  if (parts.length === 0) return [...lines, `${title} = ${numberText(value, digits)}   (${words.given})`];
  const via = parts.flatMap(({ consumer }) => (consumer === null ? [] : [`${words.via} ${names.get(consumer) ?? consumer}`]));
  if (parts.length === 1) lines.push(...writer.arithmetic(parts[0], `${title} = `, "", via));
  else {
    lines.push(`${title} = ${via.join(" + ")}`);
    parts.forEach((part, k) => lines.push(...writer.arithmetic(part, `${via[k]}: `, "  ")));
    const shares = parts.map((_, k): Expr => ["ref", String(k), "", []]);
    const numbers = new Map(shares.map((share, k) => [JSON.stringify(share), parts[k].formula.value]));
    lines.push(`  = ${plain(["add", ...shares], frameOf({}, numbers, digits), names, SUM)} = ${numberText(value, digits)}`);
  }
  if (recorded !== undefined) {
    const difference = recorded === value ? 0 : Math.abs(value - recorded);
    lines.push(`  ${words.recorded} ${numberText(recorded, digits)}   ${words.difference} ${numberText(difference, 2)}`);
  }
  return lines;
}

/** The definition as it is read after the update: new parameters, and what follows from them. */
function afterUpdate(expr: Expr, around: Around): Expr {
  return transform(expr, (node) => {
    if (node[0] !== "ref") return node;
    const face = (["new", "after"] as const).find((candidate) => around.tensor(`${node[1]}.${candidate}`) !== undefined);
    return ["ref", node[1], face ?? "", node[3]];
  });
}

/** Explains cells of one trace; symbols and short names are found once. */
export class Explainer {
  private readonly style: Style;
  private readonly names = new Map<string, Map<string, string>>();

  constructor(private readonly around: Around) {
    this.style = styleOf(around.header);
  }

  /** How `id` with `face`, at the cell `flat`, came about. Throws for a cell that is not there or an operand that is missing. */
  explain(id: string, face: "" | "grad" | "new" | "after", flat: number): CellExplanation {
    const key = face ? `${id}.${face}` : id;
    const tensor = this.around.tensor(key);
    if (!tensor || !(flat in tensor.data)) throw new RangeError(`${key} has no cell ${flat}`);
    const index = rowMajor(tensor.shape).map((stride, axis) => Math.floor(flat / stride) % tensor.shape[axis]);
    const parts = this.parts(id, face, index);
    const operands = operandsOf(parts.map(({ part }) => part));
    const numbered = new Map([...operands.keys()].map((name, k) => [name, k]));
    const operand = (formula: Formula, text: string): number | undefined => {
      const read = formula.cells.get(text);
      return read && numbered.get(nameOf(read));
    };
    const writer = new LatexWriter(this.style, DIGITS, operand);
    const value = parts.length > 0 ? parts.map(({ part }) => part.formula.value).reduce((a, b) => a + b) : tensor.data[flat];
    const entry = this.style.entry(id, face, index);
    const names = this.namesAt(id);
    return {
      key,
      flat,
      index,
      tex: this.cellTex(id, face, index),
      python: key + (index.length > 0 ? `[${index.join(",")}]` : ""),
      entry,
      value,
      given: parts.length === 0,
      via: parts.map(({ part, statement }) => contributionOf(part, statement, writer, new TextWriter(names, WORDS.en, DIGITS))),
      operands: [...operands.values()].map((read) => this.operandOf(read)),
      text: (language, recorded) =>
        textLines({ id, face, index, value, entry }, parts.map(({ part }) => part), names, language, recorded),
    };
  }

  private parts(id: string, face: string, index: readonly number[]): { part: Part; statement: number }[] {
    const evaluator = new ScalarEvaluator(this.around);
    const written = face === "after" ? "" : face;
    return this.around.header.statements.flatMap((statement, position) => {
      if (statement.target !== id || statement.face !== written) return [];
      const expr = face === "after" ? afterUpdate(statement.expr, this.around) : statement.expr;
      const at: At = Object.fromEntries(statement.letters.map(([letter], axis) => [letter, index[axis]]));
      const consumer = face === "grad" ? statement.consumer : null;
      return [{ part: { ...arithmetic(expr, at, evaluator), consumer }, statement: position }];
    });
  }

  private namesAt(id: string): Map<string, string> {
    const home = id.slice(0, id.lastIndexOf("."));
    const known = this.names.get(home) ?? shortNames(this.around.header, home);
    this.names.set(home, known);
    return known;
  }

  private cellTex(id: string, face: string, index: readonly number[]): string {
    return this.style.cell(id, face, index.map((k) => String(k + 1)))[0];
  }

  private operandOf(read: Read): Operand {
    const face = /\.(grad|new|after)$/.exec(read.key)?.[1] ?? "";
    const id = face ? read.key.slice(0, -face.length - 1) : read.key;
    return { key: read.key, flat: read.flat, index: read.index, value: read.value, tex: this.cellTex(id, face, read.index) };
  }
}

function nameOf(read: Read): string {
  return `${read.key}[${read.flat}]`;
}

/** Every cell that an explanation shows, in the order of reading, each once. */
function operandsOf(parts: readonly Arithmetic[]): Map<string, Read> {
  const found = new Map<string, Read>();
  for (const part of parts) {
    const formulas = [...part.conditions.map(({ test }) => test), ...part.tables, part.formula, ...part.series.flatMap((s) => s.terms)];
    for (const read of formulas.flatMap((formula) => formula.operands)) if (!found.has(nameOf(read))) found.set(nameOf(read), read);
  }
  return found;
}

function contributionOf(part: Part, statement: number, tex: LatexWriter, text: TextWriter): Contribution {
  const where = (part.whole ? [] : part.series).map((series): Where => ({
    symbolic: tex.left(series),
    numeric: tex.series(series),
    places: tex.places(series),
    value: series.value,
    terms: series.terms.length,
    folded: series.others,
    zeros: series.zeros,
  }));
  return {
    statement,
    consumer: part.consumer,
    conditions: part.conditions.map((c) => ({ tex: tex.condition(c), text: text.condition(c), holds: c.holds })),
    notes: [
      ...part.tables.map((table) => ({ tex: tex.table(table), text: text.table(table) })),
      ...part.maxima.map((m) => ({ tex: tex.maximum(m), text: text.maximum(m) })),
    ],
    symbolic: tex.symbolic(part.formula),
    numeric: tex.numeric(part),
    places: tex.places(part.whole),
    value: part.formula.value,
    where,
    folded: part.whole?.others ?? 0,
    zeros: part.whole?.zeros ?? 0,
  };
}
