/** How numbers and tokens are written for readers. */

const MINUS = "−";
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function superscript(exponent: number): string {
  const digits = String(Math.abs(exponent)).replace(/\d/g, (digit) => SUPERSCRIPTS[Number(digit)] as string);
  return exponent < 0 ? `⁻${digits}` : digits;
}

function special(x: number): string | null {
  if (Number.isNaN(x)) return "NaN";
  if (x === Infinity) return "∞";
  if (x === -Infinity) return `${MINUS}∞`;
  return null;
}

function scientific(x: number, digits: number): string {
  const [mantissa, exponent] = x.toExponential(digits).split("e") as [string, string];
  return `${mantissa.replace("-", MINUS)}·10${superscript(Number(exponent))}`;
}

/** Below this, decimals would show too few digits of the number. */
function smallest(digits: number): number {
  return digits < 6 ? 0.5 * 10 ** -digits : 1e-4;
}

/** A number for a table: integers plainly, others with `digits` decimals, tiny and huge ones with a power of ten. */
export function short(x: number, digits: number): string {
  const word = special(x);
  if (word) return word;
  if (Number.isInteger(x) && Math.abs(x) < 1e7) return String(x === 0 ? 0 : x).replace("-", MINUS);
  const size = Math.abs(x);
  if (size < smallest(digits) || size >= 1e7) return scientific(x, Math.min(3, digits));
  // A number that is short by itself (0.7) is written as it is.
  const exact = String(x);
  const decimals = exact.includes("e") ? Infinity : exact.length - exact.indexOf(".") - 1;
  if (decimals < digits) return exact.replace("-", MINUS);
  // At full length as many digits as explanations have (`numerals.ts`): six significant ones below 0.1, too.
  const small = digits < 6 ? 0 : -1 - Math.floor(Math.log10(size));
  return x.toFixed(digits + Math.max(0, small)).replace("-", MINUS);
}

/** A number in as many digits as identify it. */
export function full(x: number): string {
  return special(x) ?? String(x === 0 ? 0 : x).replaceAll("-", MINUS);
}

/** A small difference: two significant digits. */
export function rough(x: number): string {
  if (x === 0) return "0";
  return Math.abs(x) >= 1e-3 ? short(x, 6) : (special(x) ?? scientific(x, 1));
}

/** What a reader typed, as a number; null when it is none. Accepts the printed minus sign. */
export function parseNumber(text: string): number | null {
  const plain = text.trim().replaceAll(MINUS, "-");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) return null;
  const x = Number(plain);
  return Number.isFinite(x) ? x : null;
}

/** Characters that would be invisible, or would turn the text around them, as `U+202E`. */
const INVISIBLE =
  /[\u0080-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff]/g;
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function codePoint(character: string): string {
  return `⟨U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** A token's text with every character visible: control characters as pictures (U+2400 block), outer blanks as ␣. */
export function picture(text: string): string {
  if (text === "") return "∅";
  return (
    text
      // eslint-disable-next-line no-control-regex
      .replace(/[\u0000-\u001f]/g, (character) => String.fromCharCode(0x2400 + character.charCodeAt(0)))
      .replace(/\u007f/g, "\u2421")
      .replace(INVISIBLE, codePoint)
      .replace(LONE, codePoint)
      .replace(/^ +| +$/g, (blanks) => "␣".repeat(blanks.length))
  );
}
