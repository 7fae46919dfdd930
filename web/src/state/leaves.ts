/** Which numbers a reader may change, and how positions and token texts are named. */
import type { Axis } from "../data/types.ts";
import type { Session } from "./session.ts";
import { picture } from "./text.ts";

const TOKENS = new Set(["embed.t", "loss.y"]);

/** Cells that hold the number of a token. */
export function holdsTokens(id: string): boolean {
  return TOKENS.has(id);
}

/** Inputs that the page knows how to change: tokens, targets, which rows count. */
const INPUTS = new Set([...TOKENS, "loss.scored"]);

export function isLeafEditable(session: Session, id: string): boolean {
  if (session.engine.pace === "recorded") return false;
  if (INPUTS.has(id)) return session.structure.quantity.has(id);
  return session.structure.quantity.get(id)?.editable ?? false;
}

/** The text shown for a token id: the chosen label, else that of the vocabulary. */
export function tokenText(session: Session, token: number, labels: string): string {
  const chosen = session.header.labels.find((each) => each.id === labels);
  const text = chosen?.texts[token] ?? session.header.vocabulary[token];
  return text === undefined ? `#${token}` : picture(text);
}

export type AxisKind = "positions" | "vocabulary" | "plain";

const POSITIONS = new Set(["n", "n_k", "n_q"]);

export function axisKind([, dimension]: Axis): AxisKind {
  if (POSITIONS.has(dimension)) return "positions";
  return dimension === "N" ? "vocabulary" : "plain";
}

/** The texts along an axis: tokens where it runs over positions or the vocabulary, else null. */
export function axisTexts(session: Session, axis: Axis, labels: string): string[] | null {
  const given = session.texts?.[axis[1]];
  if (given) return given.map(picture);
  const kind = axisKind(axis);
  if (kind === "plain" || session.header.vocabulary.length === 0) return null;
  if (kind === "vocabulary") {
    return Array.from({ length: session.engine.scalar(axis[1]) }, (_, token) => tokenText(session, token, labels));
  }
  return session.engine.tokens().map((token) => tokenText(session, token, labels));
}
