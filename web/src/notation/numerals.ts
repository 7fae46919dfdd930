/** Numbers as readers see them, digit for digit the same as in Python (`notation/numerals.py`, `spec.md`). */

export const MINUS = "−";
export const DIGITS = 6;

/** The significant digits of `|x|` (finite, not zero) without trailing zeros, and the exponent of the first. */
function significant(x: number, digits: number | null): [digits: string, exponent: number] {
  const text = digits === null ? Math.abs(x).toExponential() : Math.abs(x).toExponential(digits - 1);
  const [mantissa, exponent] = text.split("e");
  return [mantissa.replace(".", "").replace(/0+$/, ""), Number(exponent)];
}

/** `|x|` (finite) as a decimal numeral and, where it is written in powers of ten, the exponent. */
function parts(x: number, digits: number | null): [numeral: string, exponent: number | null] {
  if (x === 0) return ["0", null];
  if (Number.isInteger(x) && Math.abs(x) < 1e15) return [String(Math.abs(x)), null];
  const [found, exponent] = significant(x, digits);
  if (exponent < -4 || exponent >= (digits ?? 15)) {
    return [found.length === 1 ? found : `${found[0]}.${found.slice(1)}`, exponent];
  }
  if (exponent < 0) return ["0." + "0".repeat(-exponent - 1) + found, null];
  const whole = found.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return [found.length > exponent + 1 ? `${whole}.${found.slice(exponent + 1)}` : whole, null];
}

/**
 * `x` as plain text: `−0.258632`, `1.5e−8`, `−∞`; whole numbers below 1e15 in full. Six significant digits by default;
 * `null` gives the shortest numeral that reads back as `x`.
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
