/** Small bars beside numbers. They repeat what a number says, so screen readers are spared them. */

export interface BarProps {
  /** Null where nothing could be measured. */
  value: number | null;
  /** The size that fills the bar; a signed bar begins in the middle. */
  size: number;
  signed?: boolean;
  /** Another value, shown as a mark. */
  mark?: number | null;
}

const [WIDTH, HEIGHT] = [100, 14];

export function Bar({ value, size, signed = false, mark = null }: BarProps) {
  const zero = signed ? WIDTH / 2 : 0;
  const room = signed ? WIDTH / 2 : WIDTH;
  const at = (x: number): number => zero + (size > 0 ? Math.max(-1, Math.min(1, x / size)) : 0) * room;
  const end = value === null ? zero : at(value);
  // What is there but too small for the eye still leaves a trace.
  const width = value === null || value === 0 ? 0 : Math.max(0.75, Math.abs(end - zero));
  return (
    <svg class="bar" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <rect class="bar-room" x={0} y={2} width={WIDTH} height={HEIGHT - 4} />
      <rect
        class={end < zero ? "bar-negative" : "bar-positive"}
        x={end < zero ? zero - width : zero}
        y={2}
        width={width}
        height={HEIGHT - 4}
      />
      {signed && <line class="bar-zero" x1={zero} x2={zero} y1={0} y2={HEIGHT} />}
      {mark !== null && <line class="bar-mark" x1={at(mark)} x2={at(mark)} y1={0} y2={HEIGHT} />}
    </svg>
  );
}

/** The largest finite size among numbers. */
export function largestOf(values: Iterable<number | null>): number {
  let size = 0;
  for (const x of values) if (x !== null && Number.isFinite(x)) size = Math.max(size, Math.abs(x));
  return size;
}
