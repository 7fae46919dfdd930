/** Running text with formulas between dollar signs; words are put in afterwards, so they are never read as formulas. */
import { Tex } from "./formula.tsx";

export function Prose({ text, words = {} }: { text: string; words?: Record<string, string> }) {
  const filled = (piece: string): string =>
    piece.replace(/\{(\w+)\}/g, (whole, word: string) => (Object.hasOwn(words, word) ? words[word] : whole));
  return <>{text.split("$").map((piece, at) => (at % 2 === 1 ? <Tex key={at} tex={piece} /> : filled(piece)))}</>;
}
