/** Changing a number: a field for parameters, a choice of tokens for inputs and targets. */
import { useEffect, useState } from "preact/hooks";
import { dropTarget, editCell } from "../state/actions.ts";
import { holdsTokens, isLeafEditable, tokenText } from "../state/leaves.ts";
import { useOwnId, useSession, useSpeech, useStore } from "../state/session.ts";
import type { Cell } from "../state/store.ts";
import { full, parseNumber } from "../state/text.ts";

interface FieldProps {
  id: string;
  label: string;
  value: number;
  change: (x: number) => void;
  /** Smallest number allowed, for the learning rate. */
  least?: number;
}

/** A number as text: what is not a number is refused with a sentence and stays in the field. */
export function NumberField({ id: name, label, value, change, least }: FieldProps) {
  const id = useOwnId(name);
  const { t } = useSpeech();
  const [text, setText] = useState(full(value));
  const [wrong, setWrong] = useState<string | null>(null);
  useEffect(() => {
    setText(full(value));
    setWrong(null);
  }, [value, id]);
  const apply = (written: string): void => {
    const x = parseNumber(written);
    if (x === null) setWrong(t("notANumber", { text: written }));
    else if (least !== undefined && x < least) setWrong(t("tooSmall", { least }));
    else {
      setWrong(null);
      if (x !== value) change(x);
      else setText(full(value));
    }
  };
  const nudge = (by: number): void => {
    const x = parseNumber(text);
    if (x !== null) apply(String(Number((x + by).toPrecision(12))));
  };
  return (
    <span class="number-field">
      <label for={id}>{label}</label>
      <input
        id={id}
        class={wrong ? "digits wrong" : "digits"}
        value={text}
        size={Math.max(8, Math.min(20, text.length))}
        inputMode="decimal"
        autocomplete="off"
        spellcheck={false}
        aria-invalid={wrong !== null}
        aria-describedby={wrong ? `${id}-wrong` : undefined}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={(event) => apply(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") apply(event.currentTarget.value);
          if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
          event.preventDefault();
          nudge((event.key === "ArrowUp" ? 1 : -1) * (event.shiftKey ? 0.01 : 0.1));
        }}
      />
      <button type="button" class="nudge" aria-label={t("less")} onClick={() => nudge(-0.1)}>
        −
      </button>
      <button type="button" class="nudge" aria-label={t("more")} onClick={() => nudge(0.1)}>
        +
      </button>
      {wrong && (
        <span id={`${id}-wrong`} role="alert" class="wrong-text">
          {wrong}
        </span>
      )}
    </span>
  );
}

interface TokenProps {
  id: string;
  label: string;
  value: number | null;
  change: (token: number) => void;
  /** Offered for targets: the row then does not count. */
  none?: () => void;
}

export function TokenChoice({ id: name, label, value, change, none }: TokenProps) {
  const id = useOwnId(name);
  const session = useSession();
  const { t } = useSpeech();
  const labels = useStore((state) => state.labels);
  return (
    <span class="token-choice">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value === null ? "none" : String(value)}
        onChange={(event) => {
          const chosen = event.currentTarget.value;
          if (chosen === "none") none?.();
          else change(Number(chosen));
        }}
      >
        {none && <option value="none">{t("notScored")}</option>}
        {session.header.vocabulary.map((_, token) => (
          <option key={token} value={String(token)}>
            {tokenText(session, token, labels)}
          </option>
        ))}
      </select>
    </span>
  );
}

/** The means to change the looked-at cell, where it is a leaf. */
export function Editor({ id, cell }: { id: string; cell: Cell }) {
  const session = useSession();
  const { t } = useSpeech();
  useStore((state) => state.version);
  if (!isLeafEditable(session, id)) return null;
  const { engine } = session;
  const change = (x: number): void => editCell(session, id, cell.flat, x);
  let field;
  if (id === "loss.y") {
    const target = engine.targets()[cell.flat];
    field = (
      <TokenChoice
        id="edit-cell"
        label={t("change")}
        value={target}
        change={change}
        none={() => dropTarget(session, cell.flat)}
      />
    );
  } else if (id === "loss.scored") {
    const on = engine.targets()[cell.flat] !== null;
    field = (
      <label class="check">
        <input id="edit-cell" type="checkbox" checked={on} onChange={() => change(on ? 0 : 1)} /> {t("countsInLoss")}
      </label>
    );
  } else if (holdsTokens(id)) {
    field = <TokenChoice id="edit-cell" label={t("change")} value={engine.value(id)[cell.flat]} change={change} />;
  } else {
    field = (
      <NumberField
        key={`${id}:${cell.flat}`}
        id="edit-cell"
        label={t("change")}
        value={engine.value(id)[cell.flat]}
        change={change}
      />
    );
  }
  return <div class="editor">{field}</div>;
}
