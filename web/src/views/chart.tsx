/** Charts, and the one of the loss along the negative gradient: a curve, its tangent at 0, the chosen learning rate. */
import type { ComponentChildren } from "preact";
import { useSpeech } from "../state/session.ts";
import { short } from "../state/text.ts";

export interface CurveProps {
  eta: readonly number[];
  loss: readonly number[];
  /** Slope of the tangent at 0: minus the squared length of the gradient. */
  slope: number;
  now: { eta: number; loss: number };
}

const [WIDTH, HEIGHT] = [460, 240];
const [LEFT, RIGHT, TOP, BOTTOM] = [56, 12, 12, 40];
export const VIEW_BOX = `0 0 ${WIDTH} ${HEIGHT}`;
/** Where the horizontal axis lies. */
export const GROUND = HEIGHT - BOTTOM;

/** Round numbers between two ends, about five of them. */
export function ticks(low: number, high: number): number[] {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? rough;
  const found: number[] = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step)
    found.push(Number(at.toPrecision(12)));
  return found;
}

/** Where numbers lie in a chart. */
interface Frame {
  x: (at: number) => number;
  y: (at: number) => number;
  /** The ends of what is drawn. */
  across: readonly [low: number, high: number];
  up: readonly [low: number, high: number];
  /** The lowest number on the paper: a little room is left under the lowest drawn. */
  bottom: number;
}

/** A frame that holds these numbers; what is not finite is left out. */
export function frameOf(xs: readonly number[], ys: readonly number[]): Frame {
  const [left, right] = endsOf(xs);
  const [low, high] = endsOf(ys);
  const room = (high - low || 1) * 0.08;
  return {
    x: (at) => LEFT + ((at - left) / (right - left || 1)) * (WIDTH - LEFT - RIGHT),
    y: (at) => TOP + ((high + room - at) / (high - low + 2 * room)) * (HEIGHT - TOP - BOTTOM),
    across: [left, right],
    up: [low, high],
    bottom: low - room,
  };
}

function endsOf(numbers: readonly number[]): [number, number] {
  const finite = numbers.filter(Number.isFinite);
  return finite.length > 0 ? [Math.min(...finite), Math.max(...finite)] : [0, 0];
}

/** The path through points; those that are not finite are left out. */
export function pathOf({ x, y }: Frame, xs: readonly number[], ys: readonly number[]): string {
  return xs
    .map((at, k) => [x(at), y(ys[k])])
    .filter((point) => point.every(Number.isFinite))
    .map(([px, py], k) => `${k === 0 ? "M" : "L"} ${px.toFixed(2)} ${py.toFixed(2)}`)
    .join(" ");
}

/** The lines and numbers of a chart, with the name of each axis. */
export function Axes({ frame, across, up }: { frame: Frame; across: ComponentChildren; up: string }) {
  return (
    <>
      {ticks(...frame.across).map((at) => (
        <g key={at}>
          <line class="tick" x1={frame.x(at)} x2={frame.x(at)} y1={TOP} y2={HEIGHT - BOTTOM} />
          <text x={frame.x(at)} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
            {short(at, 6)}
          </text>
        </g>
      ))}
      {ticks(...frame.up).map((at) => (
        <g key={at}>
          <line class="tick" x1={LEFT} x2={WIDTH - RIGHT} y1={frame.y(at)} y2={frame.y(at)} />
          <text x={LEFT - 8} y={frame.y(at) + 4} text-anchor="end">
            {short(at, 6)}
          </text>
        </g>
      ))}
      <text class="axis-name" x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 4} text-anchor="middle">
        {across}
      </text>
      <text class="axis-name" x={12} y={TOP + 10}>
        {up}
      </text>
    </>
  );
}

export function Curve({ eta, loss, slope, now }: CurveProps) {
  const { t } = useSpeech();
  const frame = frameOf([0, Math.max(...eta, now.eta) || 1], [...loss, now.loss]);
  const { x, y } = frame;
  const right = frame.across[1];
  const start = loss[0];
  const end = slope < 0 ? Math.min(right, (frame.bottom - start) / slope) : right;
  return (
    <svg
      class="curve"
      viewBox={VIEW_BOX}
      role="img"
      aria-label={t("curveLabel", { eta: short(now.eta, 6), loss: short(now.loss, 6) })}
    >
      <Axes frame={frame} across="η" up="L" />
      <line class="tangent" x1={x(0)} y1={y(start)} x2={x(end)} y2={y(start + slope * end)} />
      <path class="loss-line" d={pathOf(frame, eta, loss)} />
      <line class="now-line" x1={x(now.eta)} x2={x(now.eta)} y1={y(now.loss)} y2={GROUND} />
      <circle class="now" cx={x(now.eta)} cy={y(now.loss)} r="4.5" />
    </svg>
  );
}
