/**
 * The header of a trace: what travels, as JSON, in a trace file and in a page.
 *
 * Ids name quantities (`blocks.0.attn.S`); keys name tensors: an id, or an id with a face (`.grad`, `.new`, `.after`).
 * Indices in data count from 0; readers see indices that count from 1.
 */

/** A text in the two languages of the page. */
export interface Bilingual {
  en: string;
  zh: string;
}

export type Language = keyof Bilingual;

/** An expression of a definition, in the array form of `notation.tree.to_json`. */
export type Expr =
  | ["num", number]
  | ["const", "pi" | "inf"]
  | ["scalar", string]
  | ["idx", string]
  | ["ref", string, Face | "", Expr[]]
  | ["add", ...Expr[]]
  | ["neg", Expr]
  | ["mul", ...Expr[]]
  | ["div", Expr, Expr]
  | ["pow", Expr, Expr]
  | ["fn", string, ...Expr[]]
  | ["cmp", "<" | "<=" | ">" | ">=" | "==" | "!=", Expr, Expr]
  | ["bool", "and" | "or" | "not", ...Expr[]]
  | ["cond", Expr, Expr, Expr]
  | ["reduce", "sum" | "mean" | "max", Expr, [string, string][], Expr | null];

/** What of a quantity a tensor holds, besides the quantity itself. */
export type Face = "grad" | "new" | "after";

export type Kind =
  | "input"
  | "parameter"
  | "intermediate"
  | "coefficient"
  | "probability"
  | "loss"
  | "gradient"
  | "optimizer state"
  | "constant";

/** A letter and the dimension it runs over: `["h", "H"]`. */
export type Axis = [letter: string, dimension: string];

export interface QuantityInfo extends Bilingual {
  id: string;
  /** Name inside its group: `W_Q`. */
  name: string;
  /** LaTeX without place: `W_Q`. */
  symbol: string;
  /** LaTeX with place, as printed when several layers are on screen: `W_Q^{(1)}`. */
  latex: string;
  layer: number | null;
  path: string;
  kind: Kind;
  axes: Axis[];
  /** Its gradient is folded into its consumers' lines (mean and deviation inside a norm). */
  folded: boolean;
  editable: boolean;
  file: string;
  line: number;
}

export interface Statement {
  target: string;
  /**
   * "" the target itself, "grad" a contribution to its gradient, "new" the target after the update. A statement belongs
   * to the update when its face is "new" or its target is of kind "optimizer state".
   */
  face: "" | "grad" | "new";
  letters: Axis[];
  expr: Expr;
  /** The quantity beside which the statement is written; for a contribution, the one that sends it. */
  consumer: string;
  adds: boolean;
  latex: { index: string; matrix: string | null };
  file: string;
  line: number;
}

export interface DerivationStep {
  latex: string;
  expr: Expr;
  reason: Bilingual;
  /** The step holds only under a condition, which the reason states. */
  condition: boolean;
}

export type StatementStatus = "definition" | "derivation" | "intuition" | "example";

/** Where numbers come from: chosen by hand, computed from any model, measured on a trained one, drawn at random. */
export type Provenance = "constructed" | "computed" | "measured" | "sampled";

export interface Derivation {
  id: string;
  title: Bilingual;
  status: StatementStatus;
  source: string;
  target: string;
  /** `partial`: a derivative of one cell by another, which is no tensor of the trace. */
  face: "" | "grad" | "new" | "partial";
  letters: Axis[];
  steps: DerivationStep[];
}

export interface LemmaStep extends DerivationStep {
  /** Names of the premises that the step needs. */
  premises: string[];
}

/** A statement that is no gradient: its lines, and what it assumes. */
export interface Lemma {
  id: string;
  title: Bilingual;
  status: StatementStatus;
  source: string;
  letters: Axis[];
  premises: Record<string, Bilingual>;
  steps: LemmaStep[];
}

/** A cell of a probe's table; a text alone is data of strangers. */
export type ReportCell = string | number | boolean | Bilingual | null;

export interface ReportTable {
  title: Bilingual;
  columns: Bilingual[];
  rows: ReportCell[][];
  provenance: Provenance;
  /** Columns that number something from 0. */
  counted: number[];
}

/** What one probe found. */
export interface Report {
  kind: string;
  title: Bilingual;
  provenance: Provenance;
  asked: Record<string, unknown>;
  tables: ReportTable[];
  notes: { status: StatementStatus; text: Bilingual }[];
  values: Record<string, unknown>;
}

/** What `glassformer trace` was given when it made this run. */
export interface Command {
  subject: string;
  text: string | null;
  options: string[];
}

/** What the three witnesses said about the gradient of one quantity. */
export interface Witness {
  err_autograd: number | null;
  /** Whether definition and automatic differentiation agree within the magnitude bound. */
  within_magnitude: boolean;
  zero_in_theory: boolean;
  /** The verdict on all three. */
  agree: boolean;
  central: {
    step: number;
    cells: [flat: number, value: number][];
    max_abs_diff: number;
    estimated_error: number;
    /** Every cell was checked, not a sample. */
    all: boolean;
  };
  directional: { difference: number; definition: number; measured: number };
}

export interface UpdateGroup {
  id: string;
  /** First-order change of the loss. */
  predicted: number;
  /** Change of the loss when only this parameter is updated. */
  alone: number;
}

/** What one group of parameters did to the loss. */
export interface Share {
  group: string;
  members: string[];
  /** First-order change. */
  predicted: number;
  /** Exact change when only this group is updated. */
  alone: number;
  /** Its share of the exact change of all together. */
  shapley: number;
  /** Standard error of the share: 0 where every set of groups was evaluated. */
  error: number;
}

export interface Attribution {
  by: "tensor" | "part" | "block";
  shares: Share[];
  evaluations: number;
  /** Null where every set of groups was evaluated, else how many random orders. */
  orders: number | null;
  seed: number | null;
}

export interface Update {
  eta: number;
  loss: number;
  groups: UpdateGroup[];
  predicted: number;
  exact: number;
  joint_loss: number;
  sequential: { loss: number; different: string[] };
  line: { eta: number[]; loss: number[] };
  /** The part of the change that first order does not see. */
  missed: number | null;
  /** Null where a file of schema 1 was written again. */
  attribution: Attribution | null;
  /** What happened to the attention to the first token and to the probability of the target. */
  watched: { id: string; index: number[]; before: number; after: number }[];
  /** Parameters with equal gradients, and how far apart those are after the step. */
  coincidences: { a: string; b: string; apart_after: number | null }[];
}

/** Token texts to show in place of those of the vocabulary. */
export interface Labels extends Bilingual {
  id: string;
  texts: string[];
}

/** What a page leaves out because it would grow beyond its limit, in bytes; `needed` is the size with everything. */
export interface LeftOut {
  limit: number;
  needed: number;
}

export interface Header {
  schema: number;
  version: string;
  title: Bilingual;
  source: string;
  provenance: Provenance;
  scalars: Record<string, number>;
  aliases: Record<string, string>;
  /** Token texts by id; text of strangers, so only ever shown as text. */
  vocabulary: string[];
  labels: Labels[];
  quantities: QuantityInfo[];
  /** Forward order, then backward order, then the update. */
  statements: Statement[];
  derivations: Derivation[];
  /** Absent in old files. */
  lemmas?: Lemma[];
  /** Absent where nobody asked them. */
  probes?: Report[];
  /** Absent where no command made the trace. */
  command?: Command;
  witnesses: Record<string, Witness>;
  update: Update | null;
  replay: { worst: number; unit: string; cells: number; by: Record<string, number> };
  /** Only in pages that do not hold everything. */
  left_out?: LeftOut;
  audit: { operations: number; uncovered: string[] } | null;
  /** The trace's own arithmetic, and the same difference in other arithmetic (absent in old files). */
  observer: { dtype: string; max_abs_logit_difference: number; others?: Record<string, number | null> };
}
