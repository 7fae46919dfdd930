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
  const step = plane.flat(0, 1) - plane.flat(0, 0);
  let [size, negative, masked] = [0, false, false];
  for (let row = 0; row < plane.rows; row++) {
    for (let column = 0, at = plane.flat(row, 0); column < plane.columns; column++, at += step) {
      const x = values[at];
      if (x === -Infinity) masked = true;
      else if (x < 0) negative = true;
      const far = Math.abs(x);
      if (far > size && far !== Infinity) size = far;
    }
  }
  return { size, negative, masked, stretched };
}

/** Paints one pixel a number. A large matrix has half a million of them, so nothing is made on the way. */
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
  const { data } = image;
  const { zero, negative, positive, masked, nan } = palette;
  const step = plane.flat(0, 1) - plane.flat(0, 0);
  for (let row = 0, to = 0; row < plane.rows; row++) {
    for (let column = 0, at = plane.flat(row, 0); column < plane.columns; column++, at += step, to += 4) {
      const x = values[at];
      const special = x === -Infinity ? masked : Number.isFinite(x) ? null : nan;
      const linear = scale.size > 0 ? Math.abs(x) / scale.size : 0;
      const share = special ? 1 : scale.stretched ? Math.sqrt(linear) : linear;
      const end = special ?? (x < 0 ? negative : positive);
      data[to] = zero[0] + (end[0] - zero[0]) * share;
      data[to + 1] = zero[1] + (end[1] - zero[1]) * share;
      data[to + 2] = zero[2] + (end[2] - zero[2]) * share;
      data[to + 3] = 255;
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
