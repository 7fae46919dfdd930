/** Everything about the number looked at: what it is, how it came about, who says so, where it goes. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Derivation } from "../data/types.ts";
import { goBack, goForward, select } from "../state/actions.ts";
import { exampleName, lookUp, type Miss } from "../state/lookup.ts";
import { indexOf, pythonName, splitKey } from "../state/keys.ts";
import { axisTexts, holdsTokens, tokenText } from "../state/leaves.ts";
import { readersOf, tryToExplain, wayToLoss } from "../state/readers.ts";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import type { Cell } from "../state/store.ts";
import { cellTex } from "../state/symbols.ts";
import { full, short } from "../state/text.ts";
import { Arithmetic, CellLink, CellList } from "./arithmetic.tsx";
import { Editor } from "./editor.tsx";
import { Formula, Tex } from "./formula.tsx";
import { TokenText } from "./token.tsx";
import { Missing } from "./missing.tsx";
import { meaningOf } from "./letters.tsx";
import { Status, type NumberStatus } from "./status.tsx";
import { WalkPanel, WalkStarts } from "./walk.tsx";
import { Witnesses } from "./witness.tsx";

/** Back, forward, and a field that goes to any number by name. */
function Navigation() {
  const session = useSession();
  const { t } = useSpeech();
  const past = useStore((state) => state.past.length);
  const future = useStore((state) => state.future.length);
  const [wrong, setWrong] = useState<Miss>([]);
  const go = (event: SubmitEvent): void => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).querySelector("input");
    const found = lookUp(session, field?.value ?? "");
    if ("key" in found) select(session, found);
    setWrong("key" in found ? [] : found);
  };
  return (
    <form class="navigation" onSubmit={go}>
      <button
        type="button"
        disabled={past === 0}
        onClick={() => goBack(session)}
        aria-label={t("back")}
        title={t("back")}
      >
        ←
      </button>
      <button
        type="button"
        disabled={future === 0}
        onClick={() => goForward(session)}
        aria-label={t("ahead")}
        title={t("ahead")}
      >
        →
      </button>
      <input id="goto" aria-label={t("goTo")} placeholder={exampleName(session)} autocomplete="off" spellcheck={false} />
      <button type="submit">{t("go")}</button>
      {wrong.length > 0 && (
        <p role="alert" class="wrong-text">
          {wrong.map(([text, words]) => t(text, words)).join(" ")}
        </p>
      )}
    </form>
  );
}

/** Where the cell lies, in words: the token of its row, the candidate of its column. */
function usePlace(cell: Cell): string {
  const session = useSession();
  const { t } = useSpeech();
  const labels = useStore((state) => state.labels);
  const { id } = splitKey(cell.key);
  const index = indexOf(cell.flat, session.engine.shape(cell.key));
  return session.engine
    .quantity(id)
    .axes.map((axis, at) => {
      const text = axisTexts(session, axis, labels)?.[index[at]];
      if (["h", "k"].includes(axis[0]) && session.header.scalars[axis[1]] === 1) return "";
      const meaning = meaningOf(axis[0], t);
      return `${meaning} ${axis[0]} = ${index[at] + 1}${text === undefined ? "" : ` “${text}”`}`;
    })
    .filter(Boolean)
    .join(" · ");
}

/** Where the number comes from: a leaf as the trace has it, chosen by the reader, or computed in the page. */
function useNumberStatus(cell: Cell): NumberStatus {
  const { header, engine } = useSession();
  const { id, face } = splitKey(cell.key);
  const { kind } = engine.quantity(id);
  if (face !== "" || (kind !== "input" && kind !== "parameter")) return "computed";
  if (engine.isEdited(id, cell.flat) || header.provenance === "constructed") return "constructed";
  return kind === "parameter" && header.provenance === "measured" ? "measured" : "recorded";
}

function Heading({ cell, tex }: { cell: Cell; tex: string }) {
  const session = useSession();
  const { pick, t } = useSpeech();
  const place = usePlace(cell);
  const labels = useStore((state) => state.labels);
  const status = useNumberStatus(cell);
  const { id, face } = splitKey(cell.key);
  const quantity = session.engine.quantity(id);
  const index = indexOf(cell.flat, session.engine.shape(cell.key));
  const x = session.engine.holds(cell.key) ? session.engine.value(cell.key)[cell.flat] : NaN;
  const edited = face === "" && session.engine.isEdited(id, cell.flat);
  const anyEdit = useStore((state) => state.edited);
  const before = session.trace.tensor(cell.key)?.[cell.flat];
  const name = face === "" ? pick(quantity) : t(`face_${face}`, { name: pick(quantity) });
  return (
    <header class={`cell-head k-${face === "grad" ? "gradient" : quantity.kind.replace(" ", "-")}`}>
      <p class="cell-name">{name}</p>
      <p class="cell-value">
        <Tex tex={tex} />
        {session.engine.holds(cell.key) && (
          <>
            {" "}
            <span class="equals">=</span>{" "}
            <b class="digits" data-role="value">
              <TokenText text={holdsTokens(id) ? `${tokenText(session, x, labels)} (${x + 1})` : short(x, 6)} />
            </b>
          </>
        )}
      </p>
      <p class="cell-id">
        <code>{pythonName(cell.key, index)}</code> <Status status={status} />
        {edited && <span class="edited-tag">{t("edited")}</span>}
      </p>
      {place && (
        <p class="quiet small">
          <TokenText text={place} />
        </p>
      )}
      {!Number.isInteger(x) && Number.isFinite(x) && <p class="quiet small digits">{full(x)}</p>}
      {anyEdit && before !== undefined && before !== x && (
        <p class="small">
          {t("beforeYourEdit")} <b class="digits">{short(before, 6)}</b>
        </p>
      )}
    </header>
  );
}

/** The formula in its two faces, and what each path of a gradient sends. */
function Formulas({ cell }: { cell: Cell }) {
  const session = useSession();
  const { t } = useSpeech();
  const { id, face } = splitKey(cell.key);
  const made = face === "after" || face === "" ? id : cell.key;
  const numbers = session.structure.madeBy.get(made) ?? [];
  if (numbers.length === 0) return null;
  return (
    <section aria-label={t("formula")} class="formulas">
      <h3>
        {t("formula")} <Status status={face === "grad" ? "derivation" : "definition"} />
      </h3>
      {face === "after" && <p class="quiet small">{t("sameFormulaAfter")}</p>}
      {numbers.map((number) => {
        const {
          latex: { matrix, index },
          consumer,
        } = session.header.statements[number];
        // Of several paths the arithmetic below shows each in its index form.
        if (numbers.length > 1) {
          const sender = consumer === null ? undefined : session.structure.quantity.get(consumer);
          return (
            <Formula key={number} tex={matrix ?? index} lazy={false} label={`${t("via")} ${sender?.name ?? ""}`} />
          );
        }
        return (
          <div key={number}>
            {matrix !== null && <Formula tex={matrix} lazy={false} label={t("matrixForm")} />}
            <Formula tex={index} lazy={false} label={t("indexForm")} />
          </div>
        );
      })}
    </section>
  );
}

function UsedBy({ cell }: { cell: Cell }) {
  const session = useSession();
  const { t } = useSpeech();
  const version = useStore((state) => state.version);
  const cells = useMemo(
    () => readersOf(cell, session).flatMap(({ key, cells }) => cells.map((flat) => ({ key, flat }))),
    [cell.key, cell.flat, version],
  );
  return (
    <section aria-label={t("usedBy")}>
      <h3>{t("usedBy")}</h3>
      {cells.length > 0 ? <CellList cells={cells} label={t("usedBy")} /> : <p class="quiet">{t("usedByNone")}</p>}
    </section>
  );
}

function Way({ cell }: { cell: Cell }) {
  const session = useSession();
  const { t } = useSpeech();
  const version = useStore((state) => state.version);
  const [shown, setShown] = useState(true);
  const way = useMemo(() => wayToLoss(cell, session), [cell.key, cell.flat, version]);
  if (way.length < 2) return null;
  return (
    <section aria-label={t("wayToLoss")}>
      <h3>
        <button type="button" class="plain" aria-expanded={shown} onClick={() => setShown(!shown)}>
          {t("wayToLoss")}
        </button>
      </h3>
      {shown && (
        <>
          <ol class="way">
            {way.map((each) => (
              <li key={`${each.key}:${each.flat}`}>
                <CellLink cell={each} />
              </li>
            ))}
          </ol>
          <p class="quiet small">{t("wayMeans")}</p>
        </>
      )}
    </section>
  );
}

/** Opens the derivations of the formula that makes this cell. */
function DerivationLinks({ cell }: { cell: Cell }) {
  const session = useSession();
  const { t, pick } = useSpeech();
  const { id, face } = splitKey(cell.key);
  const found = session.header.derivations.filter((each) => each.target === id && each.face === face);
  if (found.length === 0) return null;
  const open = (derivation: Derivation): void => {
    const { unfolded } = session.store.get();
    session.store.set({ unfolded: { ...unfolded, [derivation.id]: Math.max(1, unfolded[derivation.id] ?? 0) } });
    requestAnimationFrame(() =>
      document.getElementById(`derivation-${derivation.id}`)?.scrollIntoView({ block: "start" }),
    );
  };
  return (
    <p class="derivation-links">
      {found.map((each) => (
        <button key={each.id} type="button" onClick={() => open(each)}>
          {t("deriveIt")}: {pick(each.title)}
        </button>
      ))}
    </p>
  );
}

function CellPanel({ cell }: { cell: Cell }) {
  const session = useSession();
  const { t } = useSpeech();
  const version = useStore((state) => state.version);
  const explained = useMemo(() => tryToExplain(session.engine, cell), [cell.key, cell.flat, version]);
  const held = session.engine.holds(cell.key);
  const { id, face } = splitKey(cell.key);
  const quantity = session.engine.quantity(id);
  return (
    <div class="cell-panel" key={`${cell.key}:${cell.flat}`}>
      <Heading cell={cell} tex={cellTex(session, cell)} />
      {!held && <Missing keyName={cell.key} />}
      {face === "" && <Editor id={id} cell={cell} />}
      <Formulas cell={cell} />
      <DerivationLinks cell={cell} />
      {typeof explained !== "string" ? (
        <Arithmetic explanation={explained} />
      ) : (
        explained !== cell.key && <p class="quiet">{t("needsMissing", { key: explained })}</p>
      )}
      {held && <Witnesses cell={cell} explanation={typeof explained === "string" ? null : explained} />}
      <UsedBy cell={cell} />
      <Way cell={cell} />
      <p class="quiet small source">
        {t("definedIn")}{" "}
        <code>
          {quantity.file}:{quantity.line}
        </code>
      </p>
    </div>
  );
}

export function Inspector() {
  const { t } = useSpeech();
  const selected = useStore((state) => state.selected);
  // On a phone the panel covers half the page: it stays down until there is a number to look at.
  const [folded, setFolded] = useState(() => selected === null && matchMedia("(max-width: 820px)").matches);
  useEffect(() => {
    if (selected) setFolded(false);
  }, [selected]);
  return (
    <aside class={folded ? "inspector folded" : "inspector"} aria-label={t("inspector")} id="inspector">
      <button type="button" class="sheet-handle" aria-expanded={!folded} onClick={() => setFolded(!folded)}>
        {t("inspector")}
      </button>
      <div class="inspector-body">
        <h2 class="sr">{t("inspector")}</h2>
        <Navigation />
        <WalkPanel />
        {selected ? <CellPanel cell={selected} /> : <Welcome />}
      </div>
    </aside>
  );
}

function Welcome() {
  const { t } = useSpeech();
  return (
    <div class="welcome">
      <p>{t("welcome1")}</p>
      <p>{t("welcome2")}</p>
      <WalkStarts />
    </div>
  );
}
