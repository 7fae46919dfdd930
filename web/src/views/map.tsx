/** The way as a map: parts that open and close, arcs from what is read to what reads it. */
import { useState } from "preact/hooks";
import { openAll, show, togglePart } from "../state/actions.ts";
import { splitKey } from "../state/keys.ts";
import { edgesOf, rowsOf, type MapEdge, type MapRow } from "../state/mapping.ts";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import { tensorTex } from "../state/symbols.ts";
import { keysIn } from "./card.tsx";
import { LazyTex } from "./formula.tsx";

const ROW = 26;
const GUTTER = 58;

function arc(edge: MapEdge): string {
  const [y1, y2] = [(edge.from + 0.5) * ROW, (edge.to + 0.5) * ROW];
  const bulge = Math.min(GUTTER - 12, 8 + 7 * Math.sqrt(Math.abs(edge.to - edge.from)));
  const x = GUTTER - 5;
  return `M ${x} ${y1} C ${x - bulge} ${y1}, ${x - bulge} ${y2}, ${x} ${y2}`;
}

/** "in" for an edge into the row looked at, "out" for one from it. */
function role(edge: MapEdge, row: number, chosen: string | null): string {
  if (row >= 0) return edge.to === row ? "in" : edge.from === row ? "out" : "dim";
  if (chosen === null) return "";
  if (edge.ends.some(([, to]) => to === chosen)) return "in";
  return edge.ends.some(([from]) => from === chosen) ? "out" : "";
}

function Arcs({ edges, rows, pointed }: { edges: MapEdge[]; rows: MapRow[]; pointed: number }) {
  const chosen = useStore((state) => (state.selected ? splitKey(state.selected.key).id : null));
  const drawn = edges.map((edge) => ({ edge, role: role(edge, pointed, chosen) }));
  drawn.sort((a, b) => Number(a.role !== "" && a.role !== "dim") - Number(b.role !== "" && b.role !== "dim"));
  return (
    <svg class="arcs" width={GUTTER} height={rows.length * ROW} aria-hidden="true">
      {drawn.map(({ edge, role }) => {
        const y = (edge.to + 0.5) * ROW;
        return (
          <g key={`${edge.from} ${edge.to}`} class={`arc ${role}`}>
            <path d={arc(edge)} />
            <path class="tip" d={`M ${GUTTER - 9} ${y - 3} L ${GUTTER - 3} ${y} L ${GUTTER - 9} ${y + 3} Z`} />
          </g>
        );
      })}
    </svg>
  );
}

function Row({ row, point }: { row: MapRow; point: (on: boolean) => void }) {
  const session = useSession();
  const { t, pick } = useSpeech();
  const view = useStore((state) => state.view);
  const open = useStore((state) => state.open.has(row.id));
  const here = useStore((state) => state.selected !== null && splitKey(state.selected.key).id === row.quantity?.id);
  const { quantity } = row;
  const face = view === "gradient" ? "grad" : "";
  const kind = quantity ? (face === "grad" ? "gradient" : quantity.kind.replace(" ", "-")) : "";
  const title = row.block !== undefined ? t("block", { number: row.block + 1 }) : row.part ? pick(row.part.title) : "";
  const opens = row.kind === "block" || (row.kind === "part" && !quantity);
  return (
    <li
      class={`map-row depth-${row.depth} map-${row.kind}${here ? " here" : ""}`}
      style={{ height: `${ROW}px` }}
      onPointerEnter={() => point(true)}
      onPointerLeave={() => point(false)}
    >
      {opens && (
        <button
          type="button"
          class={open ? "twist-button open" : "twist-button"}
          aria-expanded={open}
          aria-label={`${title}: ${open ? t("close") : t("openVerb")}`}
          onClick={() => togglePart(session, row.id)}
        >
          <span class="twist" aria-hidden="true" />
        </button>
      )}
      <button
        type="button"
        class={`map-name k-${kind}`}
        title={quantity ? `${pick(quantity)} (${row.id})` : row.id}
        onClick={() => show(session, row.id)}
      >
        {quantity && <i class="dot" aria-hidden="true" />}
        {quantity && row.kind === "quantity" ? (
          <>
            <span aria-hidden="true">
              <LazyTex tex={tensorTex(session, quantity.id, face)} plain={quantity.name} />
            </span>
            <span class="map-gloss">{pick(quantity)}</span>
          </>
        ) : (
          <span class="map-title">{title}</span>
        )}
      </button>
    </li>
  );
}

export function WayMap() {
  const session = useSession();
  const { t } = useSpeech();
  const view = useStore((state) => state.view);
  const open = useStore((state) => state.open);
  const [pointed, setPointed] = useState(-1);
  // Beside the numbers where there is room; above them, and folded at first, where there is not.
  const [folded, setFolded] = useState(() => matchMedia("(max-width: 1180px)").matches);
  const rows = rowsOf(session.structure, view, open, (quantity) => keysIn(view, quantity, session) !== null);
  const edges = edgesOf(session.header, session.structure, view, rows);
  return (
    <nav class={folded ? "map folded" : "map"} aria-label={t("map")}>
      <p class="map-tools">
        <b>{t(view === "gradient" ? "mapBack" : view === "update" ? "mapUpdate" : "map")}</b>
        <button type="button" class="plain map-fold" aria-expanded={!folded} onClick={() => setFolded(!folded)}>
          {t(folded ? "mapShow" : "mapHide")}
        </button>
        <button type="button" class="plain" onClick={() => openAll(session, true)}>
          {t("openAll")}
        </button>
        <button type="button" class="plain" onClick={() => openAll(session, false)}>
          {t("closeAll")}
        </button>
      </p>
      <div class="map-body" style={{ paddingLeft: `${GUTTER}px` }}>
        <Arcs edges={edges} rows={rows} pointed={pointed} />
        <ol>
          {rows.map((row, at) => (
            <Row key={`${row.kind} ${row.id}`} row={row} point={(on) => setPointed(on ? at : -1)} />
          ))}
        </ol>
      </div>
    </nav>
  );
}
