/** Numbers as readers see them, digit for digit the same as in Python (`notation/numerals.py`, `spec.md`). */

export const MINUS = "−";
export const DIGITS = 6;

/** `|x|` (finite) as a decimal numeral and, where it is written in powers of ten, the exponent. */
function parts(x: number, digits: number | null): [numeral: string, exponent: number | null] {
  if (x === 0) return ["0", null];
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e15) return [String(size), null];
  // Twenty decimals never round a number up to the next power of ten, where fewer would.
  const exponent = Number((digits === null ? size.toExponential() : size.toExponential(20)).split("e")[1]);
  if (exponent < -4 || exponent >= (digits ?? 15)) {
    const [mantissa, power] = (digits === null ? size.toExponential() : size.toExponential(digits - 1)).split("e");
    return [withoutZeros(mantissa), Number(power)];
  }
  return [digits === null ? String(size) : withoutZeros(size.toFixed(Math.max(digits, digits - 1 - exponent))), null];
}

function withoutZeros(decimal: string): string {
  return decimal.includes(".") ? decimal.replace(/\.?0+$/, "") : decimal;
}

/**
 * `x` as plain text: `−0.258632`, `1.5e−8`, `−∞`; whole numbers below 1e15 in full. Six digits by default: six decimals,
 * and in numbers below 0.1 six significant digits. `null` gives the shortest numeral that reads back as `x`.
 */
export function numberText(x: number, digits: number | null = DIGITS): string {
  if (Number.isNaN(x)) return "NaN";
  const sign = x < 0 ? MINUS : "";
  if (!Number.isFinite(x)) return `${sign}∞`;
  const [numeral, exponent] = parts(x, digits);
  return exponent === null ? sign + numeral : `${sign}${numeral}e${exponent < 0 ? MINUS : ""}${Math.abs(exponent)}`;
}

/** `x` as LaTeX: `-0.258632`, `1.5\cdot 10^{-8}`, `-\infty`. */
export function numberLatex(x: number, digits: number | null = DIGITS): string {
  if (Number.isNaN(x)) return "\\mathrm{NaN}";
  const sign = x < 0 ? "-" : "";
  if (!Number.isFinite(x)) return `${sign}\\infty`;
  const [numeral, exponent] = parts(x, digits);
  return exponent === null ? sign + numeral : `${sign}${numeral}\\cdot 10^{${exponent}}`;
}
