/** One quantity on the way: its symbol and name, its formula, its numbers. */
import type { QuantityInfo, Statement } from "../data/types.ts";
import { cellsOf, keyOf, splitKey, type AnyFace } from "../state/keys.ts";
import { useSession, useSpeech, useStore, type Session } from "../state/session.ts";
import type { View } from "../state/store.ts";
import { keysRead } from "../state/structure.ts";
import { tensorTex } from "../state/symbols.ts";
import { Formula, LazyTex, Tex, useNear } from "./formula.tsx";
import { HeadChoice, Matrix } from "./matrix.tsx";

/** The key that a view shows of a quantity, and the one beside it; null where the view has nothing to show. */
export function keysIn(view: View, quantity: QuantityInfo, session: Session): { key: string; second?: string } | null {
  const { engine } = session;
  const having = (face: AnyFace): string | undefined => {
    const key = keyOf(quantity.id, face);
    return engine.has(key) ? key : undefined;
  };
  if (quantity.kind === "optimizer state") {
    const moved = having("new");
    return view === "update" ? { key: quantity.id, ...(moved === undefined ? {} : { second: moved }) } : null;
  }
  const after = quantity.kind === "parameter" ? having("new") : having("after");
  if (view === "gradient") {
    const key = having("grad");
    return key === undefined ? null : { key };
  }
  if (view === "update") return quantity.kind === "parameter" && after !== undefined ? { key: quantity.id } : null;
  if (view === "after") return { key: after ?? quantity.id };
  const fixed = quantity.kind === "constant" || quantity.kind === "input";
  if (view === "compare" && after !== undefined && !fixed) return { key: quantity.id, second: after };
  return { key: quantity.id };
}

/** Sizes along the axes; a single head goes without saying, as in the notes. */
function shapeText(quantity: QuantityInfo, session: Session): string {
  const shape = session.engine.shape(quantity.id);
  const told = shape.filter((size, axis) => size > 1 || !["h", "k"].includes(quantity.axes[axis][0]));
  return told.length === 0 ? "1" : told.join(" × ");
}

/** The statements that make what a view shows. */
function statementsIn(view: View, quantity: QuantityInfo, session: Session): Statement[] {
  const moved = view === "update" && (session.structure.madeBy.get(keyOf(quantity.id, "new")) ?? []).length > 0;
  const face = view === "gradient" ? "grad" : moved ? "new" : "";
  const numbers = session.structure.madeBy.get(keyOf(quantity.id, face)) ?? [];
  return numbers.map((number) => session.header.statements[number]);
}

export function formulaOf(statement: Statement): string {
  return statement.latex.matrix ?? statement.latex.index;
}

function Formulas({ view, quantity }: { view: View; quantity: QuantityInfo }) {
  const session = useSession();
  const { t } = useSpeech();
  if (view === "update" && quantity.kind === "parameter" && session.engine.plainDescent) return null;
  const statements = statementsIn(view, quantity, session);
  const several = statements.length > 1;
  return (
    <>
      {statements.map((statement) => {
        const sender = statement.consumer === null ? undefined : session.structure.quantity.get(statement.consumer);
        const label = several && sender ? `${t("via")} ${sender.name}` : undefined;
        return <Formula key={statement.line} tex={formulaOf(statement)} {...(label === undefined ? {} : { label })} />;
      })}
    </>
  );
}

interface Column {
  id: string;
  face: AnyFace;
  before: string | null;
}

/** What the new value of a parameter is computed from, and the new value. */
function columnsOf({ id }: QuantityInfo, session: Session): Column[] {
  const old: Column = { id, face: "", before: null };
  if (session.engine.plainDescent) {
    return [old, { id, face: "grad", before: "-\\,\\eta\\,\\cdot" }, { id, face: "new", before: "=" }];
  }
  const numbers = session.structure.madeBy.get(keyOf(id, "new")) ?? [];
  const read = new Set(numbers.flatMap((number) => keysRead(session.header.statements[number])));
  const others = [...read].filter((key) => key !== id).map((key): Column => ({ ...splitKey(key), before: "," }));
  return [old, ...others, { id, face: "new", before: "\\to" }];
}

/** The update of one parameter in its tensors: θ − η · gradient = new for plain gradient descent. */
function UpdateRow({ quantity }: { quantity: QuantityInfo }) {
  const session = useSession();
  const columns = columnsOf(quantity, session);
  return (
    <div class="update-row">
      {columns.map(({ id, face, before }) => (
        <>
          {before !== null && (
            <span class={before === "," ? "update-sign wide-only" : "update-sign"}>
              <Tex tex={before} />
            </span>
          )}
          <figure>
            <figcaption>
              <Tex tex={tensorTex(session, id, face)} />
            </figcaption>
            <Matrix keyName={keyOf(id, face)} />
          </figure>
        </>
      ))}
    </div>
  );
}

function faceOf(view: View, quantity: QuantityInfo, key: string): AnyFace {
  if (view === "gradient") return "grad";
  if (view !== "after" || key === quantity.id) return "";
  return quantity.kind === "parameter" ? "new" : "after";
}

interface CardProps {
  quantity: QuantityInfo;
  view: View;
  /** Its place among the headings of the page. */
  level: "h3" | "h4";
}

export function Card({ quantity, view, level: Title }: CardProps) {
  const session = useSession();
  const { pick } = useSpeech();
  const [place, near] = useNear<HTMLElement>();
  const keys = keysIn(view, quantity, session);
  const chosen = useStore((state) => state.selected !== null && splitKey(state.selected.key).id === quantity.id);
  if (!keys) return null;
  const face = faceOf(view, quantity, keys.key);
  const kind = face === "grad" ? "gradient" : quantity.kind;
  const large = cellsOf(session.engine.shape(quantity.id)) > 100;
  const classes = [
    `card k-${kind.replace(" ", "-")}`,
    chosen ? "chosen" : "",
    large ? "large" : "",
    view === "update" && quantity.kind === "parameter" ? "wide" : "",
  ];
  return (
    <article
      ref={place}
      id={`card-${quantity.id}`}
      class={classes.filter(Boolean).join(" ")}
      aria-label={`${pick(quantity)} ${keys.key}`}
    >
      <header class="card-head">
        <Title class="card-title">
          <LazyTex
            tex={tensorTex(session, quantity.id, view === "compare" || view === "update" ? "" : face)}
            plain={quantity.name}
          />
          <span class="card-name">{pick(quantity)}</span>
        </Title>
        <span class="card-shape" title={quantity.id}>
          {shapeText(quantity, session)}
        </span>
      </header>
      <Formulas view={view} quantity={quantity} />
      <HeadChoice quantity={quantity} />
      {near || chosen ? (
        view === "update" && quantity.kind === "parameter" ? (
          <UpdateRow quantity={quantity} />
        ) : (
          <Matrix keyName={keys.key} secondKey={keys.second} />
        )
      ) : (
        <div class={large ? "waiting large" : "waiting"} />
      )}
    </article>
  );
}
