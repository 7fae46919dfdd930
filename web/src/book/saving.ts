/** Matrices and figures as files: LaTeX, SVG, PNG; drawn here, saved by the browser, sent nowhere. */
import { numberLatex } from "../notation/numerals.ts";
import { save } from "../state/download.ts";
import { splitKey } from "../state/keys.ts";
import { type Session, countedFrom } from "../state/session.ts";
import { type Plane, planeOf } from "../state/slices.ts";
import { tensorTex } from "../state/symbols.ts";
import { short } from "../state/text.ts";

function planeIn(session: Session, key: string): Plane {
  return planeOf(session.engine.quantity(splitKey(key).id), session.engine.shape(key), 0);
}

function rowsOf(session: Session, key: string, write: (x: number) => string): string[][] {
  const plane = planeIn(session, key);
  const values = session.engine.value(key);
  const from = countedFrom(session, key);
  return Array.from({ length: plane.rows }, (_, row) =>
    Array.from({ length: plane.columns }, (_, column) => write(values[plane.flat(row, column)] + from)),
  );
}

/** `A = \begin{pmatrix} … \end{pmatrix}` with the numbers as they stand. */
export function matrixLatex(session: Session, key: string): string {
  const { id, face } = splitKey(key);
  const rows = rowsOf(session, key, (x) => numberLatex(x));
  const name = tensorTex(session, id, face);
  if (rows.length === 1 && rows[0].length === 1) return `${name} = ${rows[0][0]}`;
  return `${name} = \\begin{pmatrix} ${rows.map((row) => row.join(" & ")).join(" \\\\ ")} \\end{pmatrix}`;
}

const [LINE, GAP, SIZE, MARGIN] = [26, 18, 16, 12];
/** Width of a digit in the font of the drawing, about. */
const DIGIT = 8.6;
const FONT = "'Latin Modern Roman', 'Times New Roman', Times, serif";

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (mark) => `&#${mark.charCodeAt(0)};`);
}

/** A matrix between brackets as a drawing that stands alone: black on white, whatever the page's colours. */
export function matrixSvg(session: Session, key: string): string {
  const { id, face } = splitKey(key);
  const rows = rowsOf(session, key, (x) => short(x, 6));
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)) * DIGIT);
  const name = session.style.entry(id, face, []) + " =";
  const left = MARGIN + name.length * DIGIT + GAP;
  const ends = widths.map((_, column) => left + sum(widths.slice(0, column + 1)) + GAP * column + 8);
  const width = left + sum(widths) + GAP * (widths.length - 1) + 16 + MARGIN;
  const height = rows.length * LINE + 2 * MARGIN;
  const texts = rows.flatMap((row, at) =>
    row.map((text, column) => `<text x="${ends[column]}" y="${MARGIN + LINE * (at + 0.68)}" text-anchor="end">${escaped(text)}</text>`),
  );
  const bracket = (x: number, way: number): string =>
    `<path d="M ${x + 5 * way} ${MARGIN} H ${x} V ${height - MARGIN} H ${x + 5 * way}" fill="none" stroke="#000" stroke-width="1.4"/>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT}" font-size="${SIZE}">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="${MARGIN}" y="${height / 2 + 5}" font-style="italic">${escaped(name)}</text>`,
    bracket(left, 1),
    bracket(width - MARGIN, -1),
    ...texts,
    "</svg>",
  ].join("\n");
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, x) => total + x, 0);
}

/** What of an element's look a drawing takes along when it leaves the page. */
const LOOK = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-style", "font-weight", "opacity", "text-anchor"];

/** A drawing of the page as one that stands alone: the look that style sheets gave it is written into it. */
export function figureSvg(drawn: SVGSVGElement): string {
  const copy = drawn.cloneNode(true) as SVGSVGElement;
  const [from, to] = [[drawn, ...drawn.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    for (const name of LOOK) to[at].setAttribute(name, style.getPropertyValue(name));
    to[at].removeAttribute("class");
  });
  const { width, height } = drawn.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(Math.ceil(width)));
  copy.setAttribute("height", String(Math.ceil(height)));
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** Pixels for each unit of a drawing. */
const SHARP = 3;

/** Draws an SVG onto a canvas and hands it to the browser as PNG. */
async function savePng(svg: string, name: string): Promise<void> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth * SHARP;
  canvas.height = image.naturalHeight * SHARP;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (blob) save(blob, "image/png", `${name}.png`);
}

export type Format = "svg" | "png";

/** Saves a drawing under a name of which only harmless characters are kept. */
export function saveDrawing(svg: string, name: string, format: Format): void {
  const plain = `glassformer-${name.replace(/[^\w-]+/g, "-")}`;
  if (format === "svg") save(svg, "image/svg+xml", `${plain}.svg`);
  else void savePng(svg, plain);
}
