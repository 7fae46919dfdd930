/** The quantities of an example side by side: inputs to change, results to look at, or places for results to fill in. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Bilingual } from "../data/types.ts";
import { goBack } from "../state/actions.ts";
import { MarksContext, marksOf } from "../state/marks.ts";
import { tryToExplain } from "../state/readers.ts";
import { countedFrom, useSession, useSpeech, useStore } from "../state/session.ts";
import { tensorTex } from "../state/symbols.ts";
import { short } from "../state/text.ts";
import { Arithmetic } from "../views/arithmetic.tsx";
import { NumberGrid } from "../views/cells.tsx";
import { Tex } from "../views/formula.tsx";
import { LatexDialog } from "../views/latex.tsx";
import { HeadChoice, Matrix, fits, useGrid } from "../views/matrix.tsx";
import { AnswerField, InputField } from "./fields.tsx";
import type { Paper } from "./paper.ts";
import { SaveMenu } from "./save.tsx";
import { useBookSpeech } from "./state.ts";
import { Told as Name } from "./symbols.tsx";

/** A matrix of inputs. */
function Inputs({ id }: { id: string }) {
  const grid = useGrid(id);
  if (!fits(grid.plane)) return <Matrix keyName={id} />;
  return <NumberGrid {...grid} cell={(flat, { words }) => <InputField cell={{ key: id, flat }} words={words} />} />;
}

/** A matrix of answers; cells that are not asked for stay hidden, those that no number can be written into do not. */
function Answers({ keyName, paper }: { keyName: string; paper: Paper }) {
  const { engine } = useSession();
  const grid = useGrid(keyName);
  return (
    <NumberGrid
      {...grid}
      cell={(flat, { words }) => {
        const cell = { key: keyName, flat };
        const value = engine.value(keyName)[flat];
        if (!paper.asks(cell)) return <span class="unasked">{Number.isFinite(value) ? "·" : short(value, 6)}</span>;
        return (
          <AnswerField
            cell={cell}
            words={words}
            text={paper.text(cell)}
            mark={paper.mark(cell)}
            write={(text) => paper.write(cell, text)}
            check={paper.check}
          />
        );
      }}
    />
  );
}

interface QuantityProps {
  keyName: string;
  note?: Bilingual | undefined;
  paper: Paper | null;
  /** Inputs may be changed. */
  editable: boolean;
}

function Quantity({ keyName, note, paper, editable }: QuantityProps) {
  const session = useSession();
  const { pick } = useSpeech();
  const { id, face } = session.engine.split(keyName);
  const quantity = session.engine.quantity(id);
  const hidden = paper?.hides(keyName) ?? false;
  const kind = face === "grad" ? "gradient" : quantity.kind.replace(" ", "-");
  return (
    <figure class={`quantity k-${kind}`} data-quantity={keyName}>
      <figcaption>
        <span class="quantity-name">
          <Tex tex={tensorTex(session, id, face)} /> <span><Name text={pick(quantity)} /></span>
        </span>
        {!hidden && <SaveMenu keyName={keyName} />}
      </figcaption>
      <HeadChoice quantity={quantity} />
      {hidden && paper ? (
        <Answers keyName={keyName} paper={paper} />
      ) : editable && face === "" && quantity.editable ? (
        <Inputs id={id} />
      ) : (
        <Matrix keyName={keyName} />
      )}
      {note && <p class="quantity-note"><Name text={pick(note)} /></p>}
    </figure>
  );
}

/** The number looked at: how it came about, with a way back through those looked at before. */
function Told({ before }: { before: ComponentChildren }) {
  const session = useSession();
  const say = useBookSpeech();
  const selected = useStore((state) => state.selected);
  const past = useStore((state) => state.past.length);
  useStore((state) => state.version);
  if (!selected) return null;
  const explained = tryToExplain(session.engine, selected);
  if (typeof explained === "string") return null;
  return (
    <div class="told" role="region" aria-label={say("howItCame")}>
      <p class="told-head">
        <button type="button" class="quiet-button" disabled={past === 0} aria-label="←" onClick={() => goBack(session)}>
          ←
        </button>
        <span class="told-name">
          <Tex tex={explained.tex} /> = <b class="digits">{short(explained.value + countedFrom(session, explained.key), 6)}</b>
        </span>
        <button type="button" class="quiet-button" onClick={() => session.store.set({ selected: null, past: [] })}>
          {say("closeArithmetic")}
        </button>
      </p>
      {before}
      <Arithmetic explanation={explained} />
    </div>
  );
}

interface DeskProps {
  children: ComponentChildren;
  /** Stands above the arithmetic of the looked-at number. */
  before?: ComponentChildren;
}

/** What a sheet and all that hangs on it needs around it: marks of the looked-at cell, LaTeX on demand. */
export function Desk({ children, before }: DeskProps) {
  const session = useSession();
  const selected = useStore((state) => state.selected);
  const version = useStore((state) => state.version);
  const dialog = useStore((state) => state.dialog);
  const marks = useMemo(() => marksOf(session, selected), [selected, version]);
  return (
    <MarksContext.Provider value={marks}>
      {children}
      <Told before={before} />
      {dialog?.kind === "latex" && <LatexDialog source={dialog.source} />}
    </MarksContext.Provider>
  );
}

interface SheetProps {
  /** Keys of tensors. */
  show: readonly string[];
  notes: Readonly<Record<string, Bilingual>>;
  paper: Paper | null;
  editable: boolean;
}

export function Sheet({ show, notes, paper, editable }: SheetProps) {
  return (
    <div class="quantities">
      {show.map((id) => (
        <Quantity key={id} keyName={id} note={notes[id]} paper={paper} editable={editable} />
      ))}
    </div>
  );
}

