/** What a softmax and a cross-entropy pass back when their scores grow: curves over a scale that doubles. */
import type { Report } from "../data/types.ts";
import type { Text } from "../i18n.ts";
import { rowOf, rowsOf, type Numbers } from "../state/report.ts";
import { useSpeech } from "../state/session.ts";
import { short } from "../state/text.ts";

const [WIDTH, HEIGHT] = [460, 240];
const [LEFT, RIGHT, TOP, BOTTOM] = [40, 12, 14, 40];

interface CurveLine {
  name: Text;
  look: string;
  values: Numbers;
}

function mean(rows: Numbers[] | null): Numbers | null {
  if (!rows || rows.length === 0) return null;
  return rows[0].map((_, k) => rows.reduce((total, row) => total + (row[k] ?? Number.NaN), 0) / rows.length);
}

function linesOf({ values }: Report): CurveLine[] {
  const found: [Text, string, Numbers | null][] = [
    ["curve_jacobian", "jacobian", mean(rowsOf(values, "jacobian"))],
    ["curve_slope", "slope", mean(rowsOf(values, "slope"))],
    ["curve_right", "right", rowOf(values, "right")],
    ["curve_wrong", "unlikely", rowOf(values, "wrong")],
    ["curve_target", "aimed", rowOf(values, "target")],
  ];
  return found.flatMap(([name, look, numbers]) => (numbers ? [{ name, look, values: numbers }] : []));
}

export function SaturationFigure({ report }: { report: Report }) {
  const { t } = useSpeech();
  const lines = linesOf(report);
  const scales = (rowOf(report.values, "scales") ?? []).filter((c): c is number => c !== null && c > 0);
  if (scales.length < 2 || lines.length === 0 || lines.some(({ values }) => values.length !== scales.length)) return null;
  const [first, last] = [Math.log2(scales[0]), Math.log2(scales[scales.length - 1])];
  const top = Math.max(0.5, ...lines.flatMap(({ values }) => values.map((y) => y ?? 0)));
  const x = (c: number): number => LEFT + ((Math.log2(c) - first) / (last - first)) * (WIDTH - LEFT - RIGHT);
  const y = (at: number): number => TOP + ((top - at) / (top + 1)) * (HEIGHT - TOP - BOTTOM);
  const path = ({ values }: CurveLine): string =>
    values
      .flatMap((at, k) => (at === null ? [] : [`${x(scales[k]).toFixed(2)} ${y(at).toFixed(2)}`]))
      .map((point, k) => (k === 0 ? "M " : "L ") + point)
      .join(" ");
  const { unscaled } = report.asked;
  const marks: [number, string][] = [[1, t("asItIs")]];
  if (typeof unscaled === "number" && unscaled > 1.2) marks.push([unscaled, t("unscaledMark")]);
  return (
    <figure class="saturation">
      <svg
        class="curve"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={t("curvesLabel", { from: short(scales[0], 4), to: short(scales[scales.length - 1], 4) })}
      >
        {scales
          .filter((_, k) => k % 2 === 0)
          .map((c) => (
            <g key={c}>
              <line class="tick" x1={x(c)} x2={x(c)} y1={TOP} y2={HEIGHT - BOTTOM} />
              <text x={x(c)} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
                {c < 1 ? `1/${short(1 / c, 2)}` : short(c, 2)}
              </text>
            </g>
          ))}
        {[-1, -0.5, 0, 0.5].map((at) => (
          <g key={at}>
            <line class={at === 0 ? "tick strong" : "tick"} x1={LEFT} x2={WIDTH - RIGHT} y1={y(at)} y2={y(at)} />
            <text x={LEFT - 6} y={y(at) + 4} text-anchor="end">
              {short(at, 2)}
            </text>
          </g>
        ))}
        {marks.map(([at, label]) => (
          <g key={label}>
            <line class="now-line" x1={x(at)} x2={x(at)} y1={TOP} y2={HEIGHT - BOTTOM} />
            <title>{label}</title>
          </g>
        ))}
        <text class="axis-name" x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 4} text-anchor="middle">
          {t("scale")}
        </text>
        {lines.map((line) => (
          <path key={line.look} class={`curve-line curve-${line.look}`} d={path(line)} />
        ))}
      </svg>
      <ul class="curve-names">
        {lines.map(({ name, look }) => (
          <li key={look}>
            <svg viewBox="0 0 24 8" aria-hidden="true">
              <line class={`curve-line curve-${look}`} x1="0" x2="24" y1="4" y2="4" />
            </svg>
            {t(name)}
          </li>
        ))}
      </ul>
      <figcaption class="quiet small">{t("curvesMean")}</figcaption>
    </figure>
  );
}
