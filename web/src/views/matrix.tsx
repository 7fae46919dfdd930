/** A tensor in the plane: numbers where they fit, a heat map where they do not, a selector for its heads. */
import type { QuantityInfo } from "../data/types.ts";
import { axisTexts, holdsTokens, tokenText } from "../state/leaves.ts";
import { splitKey } from "../state/keys.ts";
import { useSession, useSpeech, useStore, type Session } from "../state/session.ts";
import { planeOf, type Plane } from "../state/slices.ts";
import { short } from "../state/text.ts";
import { NumberTable } from "./cells.tsx";
import { Heatmap } from "./heatmap.tsx";

const MOST_ROWS = 12;
const MOST_COLUMNS = 12;
const MOST_CELLS = 100;

function fits(plane: Plane): boolean {
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
  if (quantity.name === "allowed" || quantity.name === "scored") return (x) => (x ? t("yes") : t("no"));
  return undefined;
}

/** Buttons that choose the head (or the place along another third axis). */
export function HeadChoice({ quantity }: { quantity: QuantityInfo }) {
  const session = useSession();
  const { t } = useSpeech();
  const part = session.structure.partOf.get(quantity.id)?.id ?? quantity.path;
  const head = useStore((state) => state.heads[part] ?? 0);
  const { through } = planeOf(quantity, session.engine.shape(quantity.id), head);
  if (!through || through.size === 1) return null;
  const choose = (at: number): void => {
    session.store.set({ heads: { ...session.store.get().heads, [part]: at } });
  };
  return (
    <div class="heads" role="group" aria-label={t("head")}>
      <span>{t("head")}</span>
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
  const session = useSession();
  const { t, pick } = useSpeech();
  const labels = useStore((state) => state.labels);
  useStore((state) => state.version);
  const quantity = session.engine.quantity(splitKey(keyName).id);
  const part = session.structure.partOf.get(quantity.id)?.id ?? quantity.path;
  const head = useStore((state) => state.heads[part] ?? 0);
  const write = useWriter(quantity);
  const plane = planeOf(quantity, session.engine.shape(keyName), head);
  const common = {
    plane,
    rowTexts: texts(session, plane.rowAxis, plane.rows, labels),
    columnTexts: texts(session, plane.columnAxis, plane.columns, labels),
    caption: `${pick(quantity)} ${keyName}`,
    write,
  };
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
