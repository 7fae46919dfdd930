/** Places for numbers that a reader writes: an input of an example, an answer on paper. */
import { useEffect, useState } from "preact/hooks";
import { editCell } from "../state/actions.ts";
import { useMarks } from "../state/marks.ts";
import { countedFrom, useSession, useStore } from "../state/session.ts";
import type { Cell } from "../state/store.ts";
import { cellName } from "../state/symbols.ts";
import { full, parseNumber, short } from "../state/text.ts";
import type { Mark } from "./answers.ts";
import { useBookSpeech } from "./state.ts";

interface FieldProps {
  cell: Cell;
  /** Row and column in words. */
  words: string;
}

/** Characters of room in a field. */
function roomFor(text: string): number {
  return Math.max(4, Math.min(10, text.length + 1));
}

/** An input: short while it is looked at, in full while it is written; what is no number is refused and stays. */
export function InputField({ cell, words }: FieldProps) {
  const session = useSession();
  const say = useBookSpeech();
  useStore((state) => state.version);
  const from = countedFrom(session, cell.key);
  const value = session.engine.value(cell.key)[cell.flat] + from;
  const [text, setText] = useState<string | null>(null);
  const mark = useMarks(cell.key)?.get(cell.flat) ?? "";
  const chosen = useStore((state) => state.selected?.key === cell.key && state.selected.flat === cell.flat);
  useEffect(() => setText(null), [value]);
  const shown = text ?? short(value, 4);
  const wrong = text !== null && parseNumber(text) === null;
  const edited = session.engine.isEdited(cell.key, cell.flat);
  const put = (x: number): void => {
    if (x !== value) editCell(session, cell.key, cell.flat, x - from);
    else setText(null);
  };
  const apply = (written: string): void => {
    const x = parseNumber(written);
    // The short form of an unchanged number is not a change.
    if (x !== null && written !== short(value, 4)) put(x);
    else if (x !== null) setText(null);
  };
  const nudge = (by: number): void => {
    const x = parseNumber(text ?? full(value));
    if (x !== null) put(Number((x + by).toPrecision(12)));
  };
  const classes = ["number", "field", mark, chosen ? "chosen" : "", edited ? "edited" : "", wrong ? "wrong" : ""];
  return (
    <input
      class={classes.filter(Boolean).join(" ")}
      data-cell={`${cell.key}:${cell.flat}`}
      value={shown}
      size={roomFor(shown)}
      inputMode="decimal"
      autocomplete="off"
      spellcheck={false}
      title={wrong ? say("notANumber", { text: shown }) : full(value)}
      aria-invalid={wrong}
      aria-label={[cellName(session, cell), words].filter(Boolean).join(", ")}
      onFocus={(event) => event.currentTarget.select()}
      onInput={(event) => setText(event.currentTarget.value)}
      onChange={(event) => apply(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter") apply(event.currentTarget.value);
        if (event.key === "Escape") setText(null);
        if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
        event.preventDefault();
        nudge((event.key === "ArrowUp" ? 1 : -1) * (event.shiftKey ? 0.01 : 0.1));
      }}
    />
  );
}

interface AnswerProps extends FieldProps {
  text: string;
  /** What the last check said of it. */
  mark: Mark;
  write: (text: string) => void;
  check: () => void;
}

/** An answer: empty until the reader fills it in. */
export function AnswerField({ cell, words, text, mark, write, check }: AnswerProps) {
  const session = useSession();
  const say = useBookSpeech();
  const name = say("yourAnswer", { name: cellName(session, cell) });
  return (
    <input
      class={`number field answer ${mark}`}
      data-answer={`${cell.key}:${cell.flat}`}
      value={text}
      size={roomFor(text)}
      autocomplete="off"
      spellcheck={false}
      placeholder="?"
      aria-invalid={mark === "wrong"}
      aria-label={[name, words].filter(Boolean).join(", ")}
      onInput={(event) => write(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter") check();
      }}
    />
  );
}
