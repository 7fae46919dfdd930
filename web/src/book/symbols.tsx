/** Plain texts in which a letter with a subscript (`W_Q`, `d_k`) is drawn as the symbol that it names. */
import { Prose } from "../views/prose.tsx";

const SYMBOL = /(√?)(?<![\w\\])([A-Za-z])_([A-Za-z]{1,3}|\d)(?!\w|\.\w)/g;

/** The text with its symbols between dollar signs; what stands between dollar signs already is left as it is. */
export function withSymbols(text: string): string {
  return text
    .split("$")
    .map((piece, at) => (at % 2 === 1 ? piece : piece.replace(SYMBOL, dollars)))
    .join("$");
}

function dollars(_: string, root: string, letter: string, low: string): string {
  const symbol = low.length === 1 ? `${letter}_${low}` : `${letter}_{\\mathrm{${low}}}`;
  return root ? `$\\sqrt{${symbol}}$` : `$${symbol}$`;
}

/** A title, a name or a sentence of the book. */
export function Told({ text }: { text: string }) {
  return <Prose text={withSymbols(text)} />;
}
