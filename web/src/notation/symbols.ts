/**
 * Symbols: how the names of a trace print (the same rules as `notation/symbols.py`).
 *
 * What the reader sees adds to a declared symbol only what tells two things apart: the layer as a superscript where there
 * are several, the head where there is more than one, the place where one symbol stands at two places of a layer.
 */
import type { Header, QuantityInfo } from "../data/types.ts";

export const GREEK: Readonly<Record<string, string>> = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ϵ", varepsilon: "ε", eta: "η", theta: "θ", kappa: "κ",
  lambda: "λ", mu: "μ", nu: "ν", xi: "ξ", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", phi: "φ", varphi: "φ", chi: "χ",
  psi: "ψ", omega: "ω", ell: "ℓ", Gamma: "Γ", Delta: "Δ", Theta: "Θ", Lambda: "Λ", Sigma: "Σ", Phi: "Φ", Psi: "Ψ",
  Omega: "Ω",
};

const GREEK_NAMES = Object.keys(GREEK).join("|");
const ACCENTS: Readonly<Record<string, string>> = { hat: "\u0302", tilde: "\u0303", bar: "\u0304", vec: "\u20d7" };
const MACRON = "\u0304";
const LETTER = new RegExp(`^(?:[A-Za-z]|\\\\(?:${GREEK_NAMES})(?![A-Za-z]))$`);
const FONT = /^\\math(?:cal|bf|bb|frak|scr)\s*(?:\{[A-Za-z]\}|[A-Za-z])$/;
const BARE = new RegExp(`^([A-Za-z]|eps|${GREEK_NAMES})(?:_?([0-9]+)|_([A-Za-z0-9]+))?$`);
const HEADS = "H";
/** Dimensions whose letter stands in the superscript: heads, and the heads of keys and values. */
const HEAD_DIMENSIONS = new Set([HEADS, "G"]);

/** What one quantity prints as: base and subscript of its LaTeX, and the marks that this trace needs. */
interface Symbol {
  base: string;
  subscript: string;
  /** Counted from 1; null where it is not printed. */
  layer: number | null;
  /** The dimensions of its axes; null where unknown. */
  dims: readonly string[] | null;
  /** The base of a single cell in plain text: the notes' small letter where nothing else claims it. */
  entry: string;
}

/** What printing needs of a header. */
export type Named = Pick<Header, "quantities" | "scalars">;

/** The symbols of one trace, and the dimensions whose index is not printed (`H` where there is one head). */
export class Style {
  constructor(private readonly symbols: ReadonlyMap<string, Symbol>, readonly hidden: ReadonlySet<string>) {}

  symbol(id: string): Symbol {
    return this.symbols.get(id) ?? symbolOfName(id.slice(id.lastIndexOf(".") + 1));
  }

  /** The symbol without indices; `head` is what stands for the head in its superscript. */
  name(id: string, face = "", head = ""): string {
    const symbol = this.symbol(id);
    const base = face === "grad" ? barred(symbol.base) : symbol.base;
    const scope = [...(symbol.layer === null ? [] : [String(symbol.layer)]), ...(head ? [head] : [])].join(",");
    const marks = [...(scope ? [`(${scope})`] : []), ...(face === "new" || face === "after" ? [`\\text{${face}}`] : [])];
    const subscript = symbol.subscript ? `_${braced(symbol.subscript)}` : "";
    return base + subscript + (marks.length > 0 ? `^{${marks.join("\\,")}}` : "");
  }

  /** The symbol with its printed indices, one per axis, and whether a power may be attached to it. */
  cell(id: string, face: string, indices: readonly string[]): [tex: string, openToPower: boolean] {
    const symbol = this.symbol(id);
    const dims = symbol.dims ?? indices.map(() => "");
    const shown = indices.filter((_, k) => !this.hidden.has(dims[k]) && !HEAD_DIMENSIONS.has(dims[k]));
    const head = indices.find((_, k) => !this.hidden.has(dims[k]) && HEAD_DIMENSIONS.has(dims[k])) ?? "";
    const name = this.name(id, face, head);
    if (shown.length === 0) return [name, !name.includes("^")];
    if (symbol.subscript) return [`[${name}]_${braced(joined(shown))}`, true];
    return [`${name}_${braced(joined(shown))}`, !name.includes("^")];
  }

  /** A cell by its symbol, for plain text, counted from 1: `a_21`, `S̄^(2)_31`, `[W̄_Q]_21`. */
  entry(id: string, face: string, index: readonly number[]): string {
    const symbol = this.symbol(id);
    let base = plainSymbol(face === "grad" || symbol.subscript ? symbol.base : symbol.entry || symbol.base);
    if (face === "grad") {
      const [first, ...rest] = [...base];
      base = rest.length <= 1 ? first + MACRON + rest.join("") : base + MACRON;
    }
    const dims = symbol.dims ?? index.map(() => "");
    const at = (heads: boolean): string[] =>
      index.filter((_, k) => !this.hidden.has(dims[k]) && HEAD_DIMENSIONS.has(dims[k]) === heads).map((k) => String(k + 1));
    const scope = [...(symbol.layer === null ? [] : [String(symbol.layer)]), ...at(true)].join(",");
    const name = [
      base,
      symbol.subscript ? `_${plainSymbol(symbol.subscript)}` : "",
      scope ? `^(${scope})` : "",
      face === "new" || face === "after" ? `^${face}` : "",
    ].join("");
    const shown = at(false);
    return shown.length === 0 ? name : `${symbol.subscript ? `[${name}]` : name}_${joined(shown)}`;
  }
}

/** Indices side by side: `ij`, `12,3`, `t_i\,r`. */
export function joined(indices: readonly string[]): string {
  if (indices.every((index) => index.length === 1)) return indices.join("");
  return indices.join(indices.some((index) => !/^[\p{L}\p{N}]+$/u.test(index)) ? "\\," : ",");
}

/** How the names of a trace print. */
export function styleOf(trace: Named): Style {
  const layers = new Set(trace.quantities.map((q) => q.layer).filter((layer) => layer !== null));
  const bySymbol = new Map<string, QuantityInfo[]>();
  for (const q of trace.quantities) bySymbol.set(q.symbol, [...(bySymbol.get(q.symbol) ?? []), q]);
  const symbols = new Map<string, Symbol>();
  for (const [text, alike] of bySymbol) {
    const [base, subscript] = splitSymbol(text);
    const several = layers.size > 1 || new Set(alike.map((q) => q.layer)).size > 1;
    for (const q of alike) {
      const place = placeLatex(q.path, alike.filter((other) => other.layer === q.layer).map((other) => other.path));
      const small = base.toLowerCase();
      symbols.set(q.id, {
        base,
        subscript: [subscript, place].filter(Boolean).join(","),
        layer: several && q.layer !== null ? q.layer + 1 : null,
        dims: q.axes.map(([, dimension]) => dimension),
        entry: hasSmallEntries(q) && !bySymbol.has(small) ? small : base,
      });
    }
  }
  return new Style(symbols, new Set(trace.scalars[HEADS] === 1 ? [HEADS] : []));
}

/** Whether the notes write a cell with the small letter: matrices of numbers do, sets and tables do not. */
function hasSmallEntries(q: QuantityInfo): boolean {
  return /^[A-Z]$/.test(q.symbol) && q.axes.length > 0 && q.kind !== "input" && q.kind !== "constant";
}

/** What tells the place `path` from the other paths of `alike`, as a subscript; nothing when it is the only one. */
function placeLatex(path: string, alike: readonly string[]): string {
  if (alike.length < 2) return "";
  const words = alike.map(lastWord);
  const last = lastWord(path);
  const stems = new Set(words.map((word) => /^(\D+)\d+$/.exec(word)?.[1]));
  if (stems.size === 1 && !stems.has(undefined)) return last.slice(last.replace(/\d+$/, "").length);
  return `\\mathrm{${last.replaceAll("_", "\\ ")}}`;
}

function lastWord(path: string): string {
  return path.split(".").findLast((part) => !/^\d+$/.test(part)) ?? path;
}

/** Base and subscript of a declared symbol: `W_Q` is `W` and `Q`. */
function splitSymbol(latex: string): [base: string, subscript: string] {
  let depth = 0;
  for (let at = 0; at < latex.length; at++) {
    depth += Number(latex[at] === "{") - Number(latex[at] === "}");
    if (latex[at] !== "_" || depth !== 0) continue;
    const subscript = latex.slice(at + 1);
    return [latex.slice(0, at), subscript.startsWith("{") && subscript.endsWith("}") ? subscript.slice(1, -1) : subscript];
  }
  return [latex, ""];
}

/** The symbol of a bare ASCII name: `d_k`, `d_{\mathrm{ff}}`, `\eta`, `\mathrm{sd}`, `m_2`. */
function symbolOfName(name: string): Symbol {
  const match = BARE.exec(name);
  if (!match) return { base: `\\mathrm{${name.replaceAll("_", "\\_")}}`, subscript: "", layer: null, dims: null, entry: name };
  let subscript = match[2] ?? match[3] ?? "";
  if (subscript.length > 1 && !/^\d+$/.test(subscript)) subscript = `\\mathrm{${subscript}}`;
  const base = match[1].length === 1 ? match[1] : `\\${match[1] === "eps" ? "varepsilon" : match[1]}`;
  return { base, subscript, layer: null, dims: null, entry: base };
}

/** A dimension, a hyperparameter or a letter: `d_k`, `\varepsilon`, `i`. */
export function nameLatex(name: string): string {
  const symbol = symbolOfName(name);
  return symbol.base + (symbol.subscript ? `_${braced(symbol.subscript)}` : "");
}

/** The same in plain text: `d_k`, `ε`, `i`. */
export function nameText(name: string): string {
  return GREEK[name === "eps" ? "varepsilon" : name] ?? name;
}

/** A bar over the base alone: `\bar S`, `\bar{\mathcal L}`, `\overline{\hat x}`. */
function barred(base: string): string {
  if (LETTER.test(base)) return `\\bar ${base}`;
  return FONT.test(base) ? `\\bar{${base}}` : `\\overline{${base}}`;
}

export function braced(script: string): string {
  return script.length === 1 ? script : `{${script}}`;
}

/** LaTeX of a symbol as plain text: `\gamma` is `γ`, `\hat x` is `x̂`, `\mathrm{sd}` is `sd`. */
export function plainSymbol(latex: string): string {
  return latex
    .replace(/\\(hat|tilde|bar|vec)\s*\{?([A-Za-z])\}?/g, (_, accent: string, letter: string) => letter + ACCENTS[accent])
    .replace(/\\([A-Za-z]+) ?/g, (_, word: string) => (word === "lvert" || word === "rvert" ? "|" : (GREEK[word] ?? "")))
    .replaceAll("\\ ", " ")
    .replace(/[{}\\]/g, "")
    .trim();
}

/**
 * The names under which quantities appear in plain text seen from the path `home`: the bare name at home, elsewhere the
 * shortest end of the id that no other shares, that is no bare name at home and that does not begin with a number.
 */
export function shortNames(trace: Named, home: string): Map<string, string> {
  const ends = new Map<string, number>();
  const endsOf = (id: string): string[] => id.split(".").map((_, k, parts) => parts.slice(k).join("."));
  for (const { id } of trace.quantities) for (const end of endsOf(id)) ends.set(end, (ends.get(end) ?? 0) + 1);
  const atHome = new Set(trace.quantities.filter((q) => q.path === home).map((q) => q.name));
  const found = ({ id, path, name }: QuantityInfo): string => {
    if (path === home) return name;
    const candidates = endsOf(id).reverse().filter((end) => !/^\d+(\.|$)/.test(end));
    return candidates.find((end) => ends.get(end) === 1 && !atHome.has(end)) ?? id;
  };
  return new Map(trace.quantities.map((q) => [q.id, found(q)]));
}
