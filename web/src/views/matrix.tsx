/** A tensor in the plane: numbers where they fit, a heat map where they do not, a selector for its heads. */
import type { QuantityInfo } from "../data/types.ts";
import { axisTexts, holdsTokens, tokenText } from "../state/leaves.ts";
import { splitKey } from "../state/keys.ts";
import { useSession, useSpeech, useStore, type Session } from "../state/session.ts";
import { headAxis, headOfPlace, placeOfHead, planeOf, type Plane } from "../state/slices.ts";
import { short } from "../state/text.ts";
import { NumberTable } from "./cells.tsx";
import { Missing } from "./missing.tsx";
import { Heatmap } from "./heatmap.tsx";

const MOST_ROWS = 12;
const MOST_COLUMNS = 12;
const MOST_CELLS = 100;

/** Whether a plane is small enough for its numbers to be written out. */
export function fits(plane: Plane): boolean {
  return plane.rows <= MOST_ROWS && plane.columns <= MOST_COLUMNS && plane.rows * plane.columns <= MOST_CELLS;
}

/** Texts along an axis: tokens, or numbers counted from 1 (left out where the axis has one place). */
function texts(session: Session, axis: Plane["rowAxis"], size: number, labels: string): string[] {
  if (!axis) return [];
  return (
    axisTexts(session, axis, labels) ?? (size === 1 ? [] : Array.from({ length: size }, (_, at) => String(at + 1)))
  );
}

export type Writer = (x: number, flat: number) => string;

/** How the numbers of a quantity are written where they are not measures: token texts, yes and no. */
export function useWriter(quantity: QuantityInfo): Writer | undefined {
  const session = useSession();
  const { t } = useSpeech();
  const labels = useStore((state) => state.labels);
  if (quantity.id === "loss.y") {
    const targets = session.engine.targets();
    return (x, row) => (targets[row] === null ? "—" : tokenText(session, x, labels));
  }
  if (holdsTokens(quantity.id)) return (x) => tokenText(session, x, labels);
  if (quantity.name === "allowed" || quantity.name === "scored" || quantity.name.startsWith("kept_")) return (x) => (x ? t("yes") : t("no"));
  return undefined;
}

/** The place along the axis of heads of a tensor that a head of queries stands for. */
function placeIn({ engine }: Session, quantity: QuantityInfo, shape: readonly number[], head: number): number {
  const axis = headAxis(quantity);
  return axis < 0 ? head : placeOfHead(head, shape[axis], engine.scalar("H"));
}

/** Buttons that choose the head (or the place along another third axis). */
export function HeadChoice({ quantity }: { quantity: QuantityInfo }) {
  const session = useSession();
  const { t } = useSpeech();
  const part = session.structure.partOf.get(quantity.id)?.id ?? quantity.path;
  const shape = session.engine.shape(quantity.id);
  const head = useStore((state) => placeIn(session, quantity, shape, state.heads[part] ?? 0));
  const { through } = planeOf(quantity, shape, head);
  if (!through || through.size === 1) return null;
  const choose = (at: number): void => {
    const chosen = headOfPlace(at, through.size, session.engine.scalar("H"));
    session.store.set({ heads: { ...session.store.get().heads, [part]: chosen } });
  };
  const name = t(through.size < session.engine.scalar("H") ? "sharedHead" : "head");
  return (
    <div class="heads" role="group" aria-label={name}>
      <span>{name}</span>
      {Array.from({ length: through.size }, (_, at) => (
        <button type="button" aria-pressed={at === head} onClick={() => choose(at)}>
          {at + 1}
        </button>
      ))}
    </div>
  );
}

interface MatrixProps {
  keyName: string;
  /** The same tensor after the update, shown with it. */
  secondKey?: string | undefined;
}

export function Matrix({ keyName, secondKey }: MatrixProps) {
  const { engine } = useSession();
  useStore((state) => state.version);
  const missing = [keyName, secondKey].find((key) => key !== undefined && !engine.holds(key));
  return missing === undefined ? <Held keyName={keyName} secondKey={secondKey} /> : <Missing keyName={missing} />;
}

interface Grid {
  plane: Plane;
  rowTexts: string[];
  columnTexts: string[];
  caption: string;
}

/** How the tensor lies in the plane, with the texts along its sides. */
export function useGrid(keyName: string): Grid {
  const session = useSession();
  const { pick } = useSpeech();
  const labels = useStore((state) => state.labels);
  const quantity = session.engine.quantity(splitKey(keyName).id);
  const part = session.structure.partOf.get(quantity.id)?.id ?? quantity.path;
  const shape = session.engine.shape(keyName);
  const head = useStore((state) => placeIn(session, quantity, shape, state.heads[part] ?? 0));
  const plane = planeOf(quantity, shape, head);
  return {
    plane,
    rowTexts: texts(session, plane.rowAxis, plane.rows, labels),
    columnTexts: texts(session, plane.columnAxis, plane.columns, labels),
    caption: `${pick(quantity)} ${keyName}`,
  };
}

function Held({ keyName, secondKey }: MatrixProps) {
  const session = useSession();
  const { t } = useSpeech();
  useStore((state) => state.version);
  const quantity = session.engine.quantity(splitKey(keyName).id);
  const common = { ...useGrid(keyName), write: useWriter(quantity) };
  const { plane } = common;
  const zero = splitKey(keyName).face === "grad" && session.header.witnesses[quantity.id]?.zero_in_theory;
  const note = zero ? <p class="zero small">{t("zeroTensor")}</p> : null;
  if (fits(plane))
    return (
      <>
        {note}
        <NumberTable keyName={keyName} secondKey={secondKey} {...common} />
      </>
    );
  if (secondKey === undefined)
    return (
      <>
        {note}
        <Heatmap keyName={keyName} {...common} />
      </>
    );
  const before = session.engine.value(keyName);
  const after = session.engine.value(secondKey);
  const change = after.map((x, flat) => (x === before[flat] ? 0 : x - before[flat]));
  const words: Writer = (x, flat) => `${short(before[flat], 6)} → ${short(after[flat], 6)} (${short(x, 6)})`;
  return (
    <div class="heat-change">
      <p class="heat-title">{t("changeTitle")}</p>
      <Heatmap keyName={secondKey} {...common} numbers={change} write={words} />
    </div>
  );
}
