/** Commands that a reader can copy: what this page was made with, and what a page lacks asked for besides. */
import type { Header } from "../data/types.ts";

const PLAIN = /^[\w@%+=:,./-]+$/;
/** What a terminal would not show as it is: control characters, characters that turn text around, halves of pairs. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** `word` as one word of a POSIX shell (`$'…'`, where something in it cannot be seen, of bash and zsh). */
export function quoted(word: string): string {
  if (PLAIN.test(word)) return word;
  if (!HIDDEN.test(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  const spelt = Array.from(word, (character) => {
    if (character === "\n") return "\\n";
    if (character === "\t") return "\\t";
    if (character === "'" || character === "\\") return `\\${character}`;
    const code = character.codePointAt(0) ?? 0;
    if (!HIDDEN.test(character)) return character;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return `$'${spelt.join("")}'`;
}

interface Words {
  verb: "trace" | "probe";
  subject: string;
  text: string | null;
  options: readonly string[];
}

function line({ verb, subject, text, options }: Words): string {
  const arguments_ = [subject, ...(text === null ? [] : [text])];
  // What begins like an option is none after two dashes.
  const words = arguments_.some((word) => word.startsWith("-"))
    ? [...options, "--", ...arguments_]
    : [...arguments_, ...options];
  return ["glassformer", verb, ...words.map(quoted)].join(" ");
}

/** What is known of the command of a run that no command made: its kind, and the optimizer that the statements show. */
function guessed(header: Header): { subject: string; text: string | null; options: string[] } {
  const adaptive = header.quantities.some(({ kind }) => kind === "optimizer state");
  const { eta } = header.scalars;
  const step = [...(eta === undefined ? [] : ["--eta", String(eta)]), ...(adaptive ? ["--optimizer", "adamw"] : [])];
  if (header.source === "toy24") return { subject: "toy24", text: null, options: step };
  return { subject: "RUN", text: "TEXT", options: step };
}

/** The command that traces this run again, with `more` options. */
export function traceCommand(header: Header, more: readonly string[]): string {
  const { subject, text, options } = header.command ?? guessed(header);
  return line({ verb: "trace", subject, text, options: [...options, ...more] });
}

/** The command that probes the same model and text; null where the trace changed the model first (`--set`). */
export function probeCommand(header: Header, more: readonly string[]): string | null {
  const { subject, text, options } = header.command ?? guessed(header);
  if (options.includes("--set")) return null;
  const given = (name: string): string | null => {
    const at = options.indexOf(name);
    return at < 0 ? null : options[at + 1];
  };
  const target = given("--target");
  const aim = target === null ? [] : ["--target", target];
  return line({ verb: "probe", subject, text: text ?? given("--tokens"), options: [...aim, ...more] });
}
