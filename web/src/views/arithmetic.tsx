/** How one number came about: the formula at its indices, the same with this run's numbers, every operand a link. */
import { select } from "../state/actions.ts";
import { splitKey } from "../state/keys.ts";
import { countedFrom, useSession, useSpeech, useStore } from "../state/session.ts";
import type { Cell } from "../state/store.ts";
import { cellName, cellTex, tensorTex } from "../state/symbols.ts";
import { full, short } from "../state/text.ts";
import type { CellExplanation, Contribution, Operand } from "../notation/explanation.ts";
import { Formula, Tex } from "./formula.tsx";

/** A link to a cell: its symbol and its number. The symbol is drawn for the eye and written for screen readers. */
export function CellLink({ cell, value = true }: { cell: Cell; value?: boolean }) {
  const session = useSession();
  const point = (pointed: Cell | null) => (): void => session.store.set({ pointed });
  return (
    <button
      type="button"
      class="cell-link"
      data-goto={`${cell.key}:${cell.flat}`}
      onClick={() => select(session, cell)}
      onPointerEnter={point(cell)}
      onPointerLeave={point(null)}
    >
      <span aria-hidden="true">
        <Tex tex={cellTex(session, cell)} />
      </span>
      <span class="sr">{cellName(session, cell)}</span>
      {value && <Value cell={cell} />}
    </button>
  );
}

function Value({ cell: { key, flat } }: { cell: Cell }) {
  const session = useSession();
  const { t } = useSpeech();
  const { engine } = session;
  const told = engine.holds(key) ? short(engine.value(key)[flat] + countedFrom(session, key), 6) : t("notRecorded");
  return <span class="cell-link-value">{told}</span>;
}

/** Formula text whose operands answer the pointer. The list of operands below serves the keyboard. */
function Live({ tex, operands, label }: { tex: string; operands: Operand[]; label: string }) {
  const session = useSession();
  const operandAt = (target: EventTarget | null): Operand | undefined => {
    const marked = target instanceof Element ? target.closest<HTMLElement>("[data-op]") : null;
    return marked ? operands[Number(marked.dataset["op"])] : undefined;
  };
  return (
    <div
      class="live"
      onClick={(event) => {
        const operand = operandAt(event.target);
        if (operand) select(session, { key: operand.key, flat: operand.flat });
      }}
      onPointerOver={(event) => {
        const operand = operandAt(event.target);
        session.store.set({ pointed: operand ? { key: operand.key, flat: operand.flat } : null });
      }}
      onPointerLeave={() => session.store.set({ pointed: null })}
    >
      <Formula tex={tex} lazy={false} label={label} />
    </div>
  );
}

/** What a long sum leaves out. */
function Unshown({ folded, zeros }: { folded: number; zeros: number }) {
  const { t } = useSpeech();
  const told = [folded > 0 ? t("foldedTerms", { folded }) : "", zeros > 0 ? t("zeroTerms", { zeros }) : ""].filter(
    Boolean,
  );
  return told.length > 0 ? <p class="quiet small">{told.join(" ")}</p> : null;
}

function Where({ part, explanation }: { part: Contribution; explanation: CellExplanation }) {
  const { t } = useSpeech();
  if (part.where.length === 0) return null;
  return (
    <div class="where">
      {part.where.map((sum) => (
        <div key={sum.symbolic}>
          <Live tex={`${sum.symbolic} = ${sum.numeric}${apart(sum.places)}`} operands={explanation.operands} label={t("where")} />
          <Unshown {...sum} />
        </div>
      ))}
    </div>
  );
}

/** At some distance after a formula. */
function apart(tex: string): string {
  return tex && `\\qquad ${tex}`;
}

function Part({ part, explanation, several }: { part: Contribution; explanation: CellExplanation; several: boolean }) {
  const session = useSession();
  const { t, pick } = useSpeech();
  const sender = part.consumer === null ? undefined : session.structure.quantity.get(part.consumer);
  return (
    <div class="contribution">
      {sender && (
        <p class="via">
          {t("via")} <Tex tex={tensorTex(session, sender.id)} /> {pick(sender)}
          {several && <b class="digits"> {short(part.value, 6)}</b>}
        </p>
      )}
      {part.conditions.map((condition) => (
        <p class="condition" key={condition.tex}>
          {t("condition")} <Tex tex={condition.tex} />
        </p>
      ))}
      {part.notes.map((note) => (
        <p class="condition" key={note.tex}>
          {t("looksUp")} <Tex tex={note.tex} />
        </p>
      ))}
      <Live
        tex={`${several ? "" : `${explanation.tex} = `}${part.symbolic}`}
        operands={explanation.operands}
        label={t("here")}
      />
      <Live tex={`= ${part.numeric}${apart(part.places)}`} operands={explanation.operands} label={t("numbers")} />
      <Unshown {...part} />
      <Where part={part} explanation={explanation} />
    </div>
  );
}

const FIRST_OPERANDS = 12;

/** Links to cells, the first few at once. */
export function CellList({ cells, label }: { cells: readonly Cell[]; label: string }) {
  const { t } = useSpeech();
  const shown = cells.slice(0, FIRST_OPERANDS);
  const rest = cells.slice(FIRST_OPERANDS);
  return (
    <div class="cell-list" role="group" aria-label={label}>
      {shown.map((cell) => (
        <CellLink key={`${cell.key}:${cell.flat}`} cell={cell} />
      ))}
      {rest.length > 0 && (
        <details>
          <summary>{t("moreCells", { count: rest.length })}</summary>
          {rest.slice(0, 300).map((cell) => (
            <CellLink key={`${cell.key}:${cell.flat}`} cell={cell} />
          ))}
        </details>
      )}
    </div>
  );
}

export function Arithmetic({ explanation }: { explanation: CellExplanation }) {
  const session = useSession();
  const { t } = useSpeech();
  useStore((state) => state.version);
  const { face } = splitKey(explanation.key);
  const several = explanation.via.length > 1;
  if (explanation.given) return <p class="quiet">{t(face === "grad" ? "givenSeed" : "given")}</p>;
  return (
    <section aria-label={t("arithmetic")} class="arithmetic">
      <h3>{t("arithmetic")}</h3>
      {explanation.via.map((part) => (
        <Part key={part.statement} part={part} explanation={explanation} several={several} />
      ))}
      {several && (
        <p class="total">
          <Tex tex={`${explanation.tex} = `} />{" "}
          <span class="digits">
            {explanation.via
              .map((part) => (part.value < 0 ? `(${short(part.value, 6)})` : short(part.value, 6)))
              .join(" + ")}
          </span>
        </p>
      )}
      <p class="result">
        <span>{t("result")}</span>{" "}
        <b class="digits" data-role="result">
          {full(explanation.value + countedFrom(session, explanation.key))}
        </b>
      </p>
      <h3>{t("operands")}</h3>
      <CellList cells={explanation.operands} label={t("operands")} />
    </section>
  );
}
