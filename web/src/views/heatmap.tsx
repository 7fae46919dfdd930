/** A large matrix as a heat map; the exact number stands under the pointer and under the arrow keys. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { select } from "../state/actions.ts";
import { useMarks } from "../state/marks.ts";
import { coloursOf } from "../state/settings.ts";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import type { Plane } from "../state/slices.ts";
import { full, short } from "../state/text.ts";
import { Letters } from "./letters.tsx";
import { TokenText } from "./token.tsx";
import { cellSide, paint, paletteOf, scaleOf, type Scale } from "./heat.ts";

interface HeatProps {
  keyName: string;
  plane: Plane;
  rowTexts: string[];
  columnTexts: string[];
  caption: string;
  /** Numbers to paint in place of the tensor's own (a difference). */
  numbers?: Float64Array | undefined;
  write?: ((x: number, flat: number) => string) | undefined;
}

interface Place {
  row: number;
  column: number;
}

const STEPS: Record<string, Place> = {
  ArrowUp: { row: -1, column: 0 },
  ArrowDown: { row: 1, column: 0 },
  ArrowLeft: { row: 0, column: -1 },
  ArrowRight: { row: 0, column: 1 },
};

const SMALLEST_TEXT = 10;

function clamp(place: Place, plane: Plane): Place {
  return {
    row: Math.max(0, Math.min(plane.rows - 1, place.row)),
    column: Math.max(0, Math.min(plane.columns - 1, place.column)),
  };
}

/** Colours from the smallest to the largest number, with the mark of -∞. */
function Key({ scale }: { scale: Scale }) {
  const { t } = useSpeech();
  return (
    <div class="heat-key" aria-hidden="true">
      <span>{scale.negative ? short(-scale.size, 3) : "0"}</span>
      <span class={scale.negative ? "heat-bar both" : "heat-bar"} />
      <span>{short(scale.size, 3)}</span>
      {scale.masked && (
        <span class="heat-masked">
          <i /> −∞ {t("masked")}
        </span>
      )}
    </div>
  );
}

/** Boxes around what the looked-at cell reads and what reads it (drawn up to a limit: whole rows stay legible). */
function Boxes({ keyName, plane, side }: { keyName: string; plane: Plane; side: number }) {
  const marks = useMarks(keyName);
  const chosen = useStore((state) => (state.selected?.key === keyName ? state.selected.flat : -1));
  const pointed = useStore((state) => (state.pointed?.key === keyName ? state.pointed.flat : -1));
  const boxes: [flat: number, name: string][] = [...(marks ?? [])].slice(0, 400);
  if (pointed >= 0) boxes.push([pointed, "pointed"]);
  if (chosen >= 0) boxes.push([chosen, "chosen"]);
  return (
    <>
      {boxes.map(([flat, name]) => {
        const place = plane.place(flat);
        return place && <i class={`heat-box ${name}`} style={at(place, side)} />;
      })}
    </>
  );
}

function at(place: Place, side: number): Record<string, string> {
  return {
    left: `${place.column * side}px`,
    top: `${place.row * side}px`,
    width: `${side}px`,
    height: `${side}px`,
  };
}

/** About how wide a text stands in a heat map's labels, in pixels. */
function widthOf(text: string): number {
  return Array.from(text).reduce((width, character) => width + (character > "\u2e7f" ? 11 : 6.7), 0);
}

function Texts({ texts, side, along }: { texts: string[]; side: number; along: "rows" | "columns" }) {
  if (side < SMALLEST_TEXT || texts.length === 0) return null;
  const step = along === "rows" ? { height: `${side}px` } : { width: `${side}px` };
  // Words wider than their column stand upright.
  const upright = along === "columns" && texts.some((text) => widthOf(text) > side + 1);
  return (
    <div class={`heat-texts ${along}${upright ? " upright" : ""}`} aria-hidden="true">
      {texts.map((text, at) => (
        <span key={at} style={step}>
          {text !== String(at + 1) || at === 0 || at % 5 === 4 ? <TokenText text={text} /> : ""}
        </span>
      ))}
    </div>
  );
}

export function Heatmap({ keyName, plane, rowTexts, columnTexts, caption, numbers, write }: HeatProps) {
  const session = useSession();
  const { t } = useSpeech();
  const version = useStore((state) => state.version);
  const colours = useStore(coloursOf);
  const printing = useStore((state) => state.printing);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [cursor, setCursor] = useState<Place | null>(null);
  const values = numbers ?? session.engine.value(keyName);
  const stretched = useStore((state) => state.stretched);
  const start = plane.flat(0, 0);
  const scale = useMemo(() => scaleOf(values, plane, stretched), [values, version, stretched, start, keyName]);
  const side = cellSide(plane);
  useLayoutEffect(() => {
    if (canvas.current) paint(canvas.current, values, plane, scale, paletteOf(canvas.current));
  }, [values, version, colours, printing, stretched, start, keyName]);
  const chosen = useStore((state) => (state.selected?.key === keyName ? state.selected.flat : -1));
  useEffect(() => {
    if (chosen >= 0) setCursor(plane.place(chosen));
  }, [chosen]);

  const here = cursor ? clamp(cursor, plane) : null;
  const flat = here ? plane.flat(here.row, here.column) : -1;
  const open = (): void => {
    if (flat >= 0) select(session, { key: keyName, flat });
  };
  const point = (event: PointerEvent): Place => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const place = {
      row: Math.floor((event.clientY - box.top) / side),
      column: Math.floor((event.clientX - box.left) / side),
    };
    return clamp(place, plane);
  };
  const press = (event: KeyboardEvent): void => {
    const step = STEPS[event.key];
    if (event.key === "Enter" || event.key === " ") open();
    else if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    else
      setCursor(
        here ? clamp({ row: here.row + step.row, column: here.column + step.column }, plane) : { row: 0, column: 0 },
      );
    event.preventDefault();
  };
  const place = here
    ? [
        rowTexts.length ? `${t("row")} ${here.row + 1}${quoted(rowTexts[here.row], here.row)}` : "",
        `${t("column")} ${here.column + 1}${quoted(columnTexts[here.column], here.column)}`,
      ]
        .filter(Boolean)
        .join(", ")
    : "";
  const words = write ?? full;
  return (
    <div class="heat">
      <div class="matrix-scroll">
        <div class="heat-grid">
          <span class="axis-letters">
            <Letters plane={plane} />
          </span>
          <Texts texts={columnTexts} side={side} along="columns" />
          <Texts texts={rowTexts} side={side} along="rows" />
          <div
            class="heat-field"
            role="application"
            tabIndex={0}
            aria-label={`${caption}. ${t("heatHelp")}`}
            data-heat={keyName}
            style={{ width: `${plane.columns * side}px`, height: `${plane.rows * side}px` }}
            onKeyDown={press}
            onPointerMove={(event) => setCursor(point(event))}
            onClick={open}
          >
            <canvas ref={canvas} />
            <Boxes keyName={keyName} plane={plane} side={side} />
            {here && <i class="heat-box cursor" style={at(here, side)} />}
          </div>
        </div>
      </div>
      <div class="heat-side">
        <Key scale={scale} />
        <output class="heat-readout" aria-live="polite">
          {here ? (
            <>
              <b>
                <TokenText text={words(values[flat], flat)} />
              </b>{" "}
              <span>
                <TokenText text={place} />
              </span>
            </>
          ) : (
            <span class="quiet">{t("heatHelp")}</span>
          )}
        </output>
      </div>
    </div>
  );
}

/** A token text in quotes, apart from what stands before it; nothing where the axis has only numbers. */
function quoted(text: string | undefined, place: number): string {
  return text === undefined || text === String(place + 1) ? "" : ` “${text}”`;
}
