/** Points of the plane and the point read from them: a convex combination lies inside their hull. */
import { useRef } from "preact/hooks";
import { useSession, useSpeech, useStore } from "../state/session.ts";
import { tensorTex } from "../state/symbols.ts";
import { short } from "../state/text.ts";
import { ticks } from "../views/chart.tsx";
import { Tex } from "../views/formula.tsx";
import type { PlaneOf } from "./data.ts";
import { SaveFigure } from "./save.tsx";
import { useBookSpeech } from "./state.ts";

type Point = readonly [x: number, y: number];

function turn([ax, ay]: Point, [bx, by]: Point, [cx, cy]: Point): number {
  return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
}

/** The corners of the smallest convex set round `points`, counter-clockwise, each once (Andrew's monotone chain). */
export function hullOf(points: readonly Point[]): Point[] {
  const distinct = new Map(points.map((point) => [point.join(), point]));
  const sorted = [...distinct.values()].sort(([ax, ay], [bx, by]) => ax - bx || ay - by);
  const half = (from: readonly Point[]): Point[] => {
    const corners: Point[] = [];
    for (const point of from) {
      while (corners.length > 1 && turn(corners[corners.length - 2], corners[corners.length - 1], point) <= 0) corners.pop();
      corners.push(point);
    }
    return corners.slice(0, -1);
  };
  const around = [...half(sorted), ...half(sorted.toReversed())];
  return around.length > 0 ? around : sorted.slice(0, 1);
}

const SIDE = 320;
const EDGE = 34;

export function PlaneFigure({ plane, name }: { plane: PlaneOf; name: string }) {
  const session = useSession();
  const { pick } = useSpeech();
  const say = useBookSpeech();
  const place = useRef<SVGSVGElement>(null);
  useStore((state) => state.version);
  const { engine } = session;
  const numbers = engine.value(plane.points);
  const points = Array.from({ length: numbers.length / 2 }, (_, k): Point => [numbers[2 * k], numbers[2 * k + 1]]);
  const [px, py] = engine.value(plane.point);
  const all = [...points, [px, py] as const].filter((point) => point.every(Number.isFinite));
  // One scale for both directions, so that shapes keep their shape.
  const [low, high] = [Math.min(0, ...all.flat()), Math.max(...all.flat())];
  const room = (high - low || 1) * 0.06;
  const unit = (SIDE - 2 * EDGE) / (high - low + 2 * room || 1);
  const x = (at: number): number => EDGE + (at - low + room) * unit;
  const y = (at: number): number => SIDE - EDGE - (at - low + room) * unit;
  const texts = session.texts?.[engine.quantity(plane.points).axes[0][1]];
  return (
    <figure class="plane-figure">
      <figcaption>
        <span>
          {say("planeTold")} <Tex tex={tensorTex(session, plane.point)} />
        </span>
        <SaveFigure name={name} place={() => place.current} />
      </figcaption>
      <svg
        ref={place}
        class="plane"
        viewBox={`0 0 ${SIDE} ${SIDE}`}
        role="img"
        aria-label={`${pick(engine.quantity(plane.point))}: ${short(px, 4)}, ${short(py, 4)}`}
      >
        {ticks(low, high).map((at) => (
          <g key={at}>
            <line class="tick" x1={x(at)} x2={x(at)} y1={EDGE / 2} y2={SIDE - EDGE} />
            <line class="tick" x1={EDGE} x2={SIDE - EDGE / 2} y1={y(at)} y2={y(at)} />
            <text x={x(at)} y={SIDE - EDGE + 16} text-anchor="middle">
              {short(at, 4)}
            </text>
            <text x={EDGE - 7} y={y(at) + 4} text-anchor="end">
              {short(at, 4)}
            </text>
          </g>
        ))}
        <polygon class="hull" points={hullOf(points).map(([a, b]) => `${x(a).toFixed(2)},${y(b).toFixed(2)}`).join(" ")} />
        {points.map(([a, b], k) => (
          <g key={k}>
            <line class="pull" x1={x(px)} y1={y(py)} x2={x(a)} y2={y(b)} />
            <circle class="corner-point" cx={x(a)} cy={y(b)} r="4" />
            <text x={x(a) + 8} y={y(b) - 7}>
              {texts?.[k] ?? k + 1}
            </text>
          </g>
        ))}
        <circle class="read-point" cx={x(px)} cy={y(py)} r="5.5" />
      </svg>
    </figure>
  );
}
