/** Painting numbers as colours: one device pixel a cell, scaled up by the style sheet. */
import type { Plane } from "../state/slices.ts";

export interface Palette {
  negative: number[];
  zero: number[];
  positive: number[];
  masked: number[];
  nan: number[];
}

/** The theme's colours, as red, green, blue from 0 to 255. */
export function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element);
  const read = (name: string): number[] => style.getPropertyValue(`--heat-${name}`).trim().split(/\s+/).map(Number);
  return {
    negative: read("negative"),
    zero: read("zero"),
    positive: read("positive"),
    masked: read("masked"),
    nan: read("nan"),
  };
}

export interface Scale {
  /** The largest finite size: both ends of the scale, so that zero is always the paper's colour. */
  size: number;
  negative: boolean;
  masked: boolean;
  /** The square root of a number's share is shown in place of the share. */
  stretched: boolean;
}

/** The scale of the numbers in view. */
export function scaleOf(values: Float64Array, plane: Plane, stretched: boolean): Scale {
  const scale: Scale = { size: 0, negative: false, masked: false, stretched };
  for (let row = 0; row < plane.rows; row++) {
    for (let column = 0; column < plane.columns; column++) {
      const x = values[plane.flat(row, column)];
      if (x === -Infinity) scale.masked = true;
      if (!Number.isFinite(x)) continue;
      if (x < 0) scale.negative = true;
      if (Math.abs(x) > scale.size) scale.size = Math.abs(x);
    }
  }
  return scale;
}

function colour(x: number, scale: Scale, palette: Palette): number[] {
  if (x === -Infinity) return palette.masked;
  if (!Number.isFinite(x)) return palette.nan;
  const linear = scale.size > 0 ? Math.abs(x) / scale.size : 0;
  const share = scale.stretched ? Math.sqrt(linear) : linear;
  const end = x < 0 ? palette.negative : palette.positive;
  return palette.zero.map((zero, channel) => zero + (end[channel] - zero) * share);
}

export function paint(
  canvas: HTMLCanvasElement,
  values: Float64Array,
  plane: Plane,
  scale: Scale,
  palette: Palette,
): void {
  canvas.width = plane.columns;
  canvas.height = plane.rows;
  const context = canvas.getContext("2d");
  if (!context) return;
  const image = context.createImageData(plane.columns, plane.rows);
  for (let row = 0, at = 0; row < plane.rows; row++) {
    for (let column = 0; column < plane.columns; column++, at += 4) {
      const [red, green, blue] = colour(values[plane.flat(row, column)], scale, palette);
      image.data[at] = red;
      image.data[at + 1] = green;
      image.data[at + 2] = blue;
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

/** Room for a heat map, and the sides that its cells may have, in CSS pixels. */
const [WIDTH, HEIGHT] = [560, 480];
const [SMALLEST, LARGEST] = [2, 14];

/** Side of a cell on the screen, in CSS pixels. */
export function cellSide(plane: Plane): number {
  const fits = Math.min(Math.floor(WIDTH / plane.columns), Math.floor(HEIGHT / plane.rows));
  return Math.max(SMALLEST, Math.min(LARGEST, fits));
}
