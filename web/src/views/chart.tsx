/** The loss along the negative gradient: a curve, its tangent at 0, and the chosen learning rate. */
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

export function Curve({ eta, loss, slope, now }: CurveProps) {
  const { t } = useSpeech();
  const right = Math.max(...eta, now.eta) || 1;
  const finite = loss.filter(Number.isFinite);
  const low = Math.min(...finite, now.loss);
  const high = Math.max(...finite, now.loss);
  const room = (high - low || 1) * 0.08;
  const x = (at: number): number => LEFT + (at / right) * (WIDTH - LEFT - RIGHT);
  const y = (at: number): number => TOP + ((high + room - at) / (high - low + 2 * room)) * (HEIGHT - TOP - BOTTOM);
  const path = eta
    .map((at, k) => [x(at), y(loss[k])])
    .filter((point) => point.every(Number.isFinite))
    .map(([px, py], k) => `${k === 0 ? "M" : "L"} ${px.toFixed(2)} ${py.toFixed(2)}`)
    .join(" ");
  const bottom = low - room;
  const start = loss[0];
  const end = slope < 0 ? Math.min(right, (bottom - start) / slope) : right;
  return (
    <svg
      class="curve"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={t("curveLabel", { eta: short(now.eta, 6), loss: short(now.loss, 6) })}
    >
      {ticks(0, right).map((at) => (
        <g key={at}>
          <line class="tick" x1={x(at)} x2={x(at)} y1={TOP} y2={HEIGHT - BOTTOM} />
          <text x={x(at)} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
            {at}
          </text>
        </g>
      ))}
      {ticks(low, high).map((at) => (
        <g key={at}>
          <line class="tick" x1={LEFT} x2={WIDTH - RIGHT} y1={y(at)} y2={y(at)} />
          <text x={LEFT - 8} y={y(at) + 4} text-anchor="end">
            {at}
          </text>
        </g>
      ))}
      <text class="axis-name" x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 4} text-anchor="middle">
        η
      </text>
      <text class="axis-name" x={12} y={TOP + 10}>
        L
      </text>
      <line class="tangent" x1={x(0)} y1={y(start)} x2={x(end)} y2={y(start + slope * end)} />
      <path class="loss-line" d={path} />
      <line class="now-line" x1={x(now.eta)} x2={x(now.eta)} y1={y(now.loss)} y2={HEIGHT - BOTTOM} />
      <circle class="now" cx={x(now.eta)} cy={y(now.loss)} r="4.5" />
    </svg>
  );
}
