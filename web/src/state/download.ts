/** All numbers as they now stand, as JSON and as CSV; built here, saved by the browser, sent nowhere. */
import { indexOf } from "./keys.ts";
import type { Session } from "./session.ts";

interface SavedTensor {
  shape: readonly number[];
  /** Row-major; null where JSON has no spelling for the number (then it stands in `special`). */
  values: (number | null)[];
  special?: Record<string, string>;
}

function spelled(x: number): string {
  if (Number.isNaN(x)) return "nan";
  return x > 0 ? "inf" : "-inf";
}

function saved(session: Session, key: string): SavedTensor {
  const values = session.engine.value(key);
  const special: Record<string, string> = {};
  values.forEach((x, flat) => {
    if (!Number.isFinite(x)) special[String(flat)] = spelled(x);
  });
  const plain = Array.from(values, (x) => (Number.isFinite(x) ? x : null));
  const shape = session.engine.shape(key);
  return Object.keys(special).length > 0 ? { shape, values: plain, special } : { shape, values: plain };
}

/** Every quantity in every face, with the scalars as the reader set them. */
export function numbersAsJson(session: Session): string {
  const { engine, header } = session;
  const scalars = Object.fromEntries(Object.keys(header.scalars).map((name) => [name, engine.scalar(name)]));
  const numbers = Object.fromEntries(keysOf(session).map((key) => [key, saved(session, key)]));
  const { schema, version, title, source, vocabulary } = header;
  return JSON.stringify({ schema, version, title, source, edited: engine.edited(), scalars, vocabulary, numbers });
}

function keysOf({ engine }: Session): string[] {
  return engine.keys.filter((key) => !key.endsWith(".probe") && engine.holds(key));
}

/** One line per number: key, index counted from 0, value. No text of strangers is in it, so no cell can be a formula. */
export function numbersAsCsv(session: Session): string {
  const { engine } = session;
  const lines = ["key,index,value"];
  for (const key of keysOf(session)) {
    const shape = engine.shape(key);
    engine.value(key).forEach((x, flat) => {
      const written = Number.isFinite(x) ? String(x) : spelled(x);
      lines.push(`${key},${indexOf(flat, shape).join(" ")},${written}`);
    });
  }
  return `${lines.join("\r\n")}\r\n`;
}

/** Hands `content` to the browser as a file. */
export function save(content: string | Blob, type: string, name: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function fileName({ header }: Session, extension: string): string {
  return `glassformer-${header.source.replace(/[^\w-]+/g, "-")}.${extension}`;
}

export function downloadJson(session: Session): void {
  save(numbersAsJson(session), "application/json", fileName(session, "json"));
}

export function downloadCsv(session: Session): void {
  save(numbersAsCsv(session), "text/csv;charset=utf-8", fileName(session, "csv"));
}
