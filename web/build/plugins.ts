/** The small build steps that turn Vite's output into one page that needs nothing and allows nothing. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";
import { stamp } from "./stamp.ts";

/** The KaTeX faces that our formulas use; a missing face falls back to Times without a word, so keep this list honest. */
const FACES = new Set([
  "KaTeX_AMS-Regular", "KaTeX_Caligraphic-Regular", "KaTeX_Main-Bold", "KaTeX_Main-Italic", "KaTeX_Main-Regular",
  "KaTeX_Math-Italic", "KaTeX_Size1-Regular", "KaTeX_Size2-Regular", "KaTeX_Size3-Regular", "KaTeX_Size4-Regular",
  "KaTeX_Typewriter-Regular",
]);

/** Keeps, of KaTeX's style sheet, the faces above and of each face only woff2 (Vite would inline three formats). */
export function woff2Only(): Plugin {
  return {
    name: "glassformer:woff2-only",
    enforce: "pre",
    load(id) {
      const path = id.split("?")[0];
      if (!/katex(\.min)?\.css$/.test(path)) return null;
      return readFileSync(path, "utf8").replace(/@font-face\s*\{[^}]*\}/g, (rule) => {
        const woff2 = /url\(["']?(?:[^)"']*\/)?([\w-]+)\.woff2["']?\)\s*format\(["']woff2["']\)/.exec(rule);
        if (!woff2 || !FACES.has(woff2[1])) return "";
        return rule.replace(/src:[^;}]*/, `src: ${woff2[0]}`);
      });
    },
  };
}

/** The page's policy: only its own script and style run (by hash), nothing is loaded or sent, no string becomes code. */
function policy(html: string): string {
  const hashes = (tag: string): string =>
    [...html.matchAll(new RegExp(`<${tag}(?![^>]*type="application/)[^>]*>([\\s\\S]*?)</${tag}>`, "g"))]
      .map((match) => `'sha256-${createHash("sha256").update(match[1]).digest("base64")}'`)
      .join(" ") || "'none'";
  return [
    "default-src 'none'", `script-src ${hashes("script")}`, `style-src ${hashes("style")}`, "img-src data: blob:",
    "font-src data:", "connect-src 'none'", "base-uri 'none'", "form-action 'none'", "object-src 'none'",
    "require-trusted-types-for 'script'", "trusted-types 'none'",
  ].join("; ");
}

const FONT_NOTICE = `The fonts KaTeX_* are Copyright (c) 2009-2010 Design Science, Inc. and Copyright (c) 2014-2018 Khan Academy,
under the SIL Open Font License, Version 1.1.`;

/** Licences of what is inlined: they travel with every exported page. */
function notices(root: string): string {
  const one = (name: string): string =>
    `${name}\n\n${readFileSync(join(root, "node_modules", name, "LICENSE"), "utf8").trim()}`;
  return ["This page contains", one("katex"), FONT_NOTICE, one("preact")].join("\n\n").replaceAll("--", "- -");
}

/**
 * Puts policy, stamp and notices into the finished page `name`; runs after everything has been inlined. `data` are the
 * marks that whoever fills the page replaces.
 */
export function seal(root: string, name: string, data: readonly string[]): Plugin {
  return {
    name: "glassformer:seal",
    enforce: "post",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        const page = bundle[name];
        if (page?.type !== "asset") throw new Error(`the build made no ${name}`);
        const html = String(page.source);
        const marks = `<meta http-equiv="Content-Security-Policy" content="${policy(html)}">
    <meta name="glassformer-source" content="${stamp(root)}">`;
        for (const mark of ["<!--GLASSFORMER-CSP-->", "<!--GLASSFORMER-NOTICES-->", ...data]) {
          if (html.split(mark).length !== 2) throw new Error(`the page must hold ${mark} exactly once`);
        }
        page.source = html
          .replace("<!--GLASSFORMER-CSP-->", () => marks)
          .replace("<!--GLASSFORMER-NOTICES-->", () => `<!--\n${notices(root)}\n-->`);
      },
    },
  };
}

/** Text as JSON that cannot close the block it stands in. */
function inert(json: unknown): string {
  return JSON.stringify(json).replace(/[&<>]/g, (mark) => "\\u" + mark.charCodeAt(0).toString(16).padStart(4, "0"));
}

/** The numbers of a fixture as the page holds them; JSON's null stands for minus infinity. */
function base64(cells: readonly (number | null)[]): string {
  return Buffer.from(Float64Array.from(cells, (cell) => cell ?? -Infinity).buffer).toString("base64");
}

function fixture(root: string, name: string): any {
  return JSON.parse(readFileSync(join(root, "fixtures", name), "utf8"));
}

/** While developing (`npm run dev`), shows the fixture trace. */
export function fixtureData(root: string): Plugin {
  return {
    name: "glassformer:fixture",
    apply: "serve",
    transformIndexHtml(html) {
      const { header, tensors } = fixture(root, "toy24.json");
      const blocks = Object.entries<number[]>(tensors).map(
        ([key, cells]) =>
          `<script type="application/octet-stream" data-key="${key}" data-dtype="f8">${base64(cells)}</script>`,
      );
      const json = `<script type="application/json" id="glassformer-header">${inert(header)}</script>`;
      return html.replace("<!--GLASSFORMER-DATA-->", () => [json, ...blocks].join("\n"));
    },
  };
}

/** The same for the book: its fixture chapters, and the fixture trace as a run in it. */
export function fixtureBook(root: string): Plugin {
  return {
    name: "glassformer:fixture-book",
    apply: "serve",
    transformIndexHtml(html) {
      const { chapters, data } = fixture(root, "book.json");
      const { header, tensors } = fixture(root, "toy24.json");
      const blocks = Object.entries<number[]>(tensors).map(([key, cells]) => [key, { dtype: "f8", data: base64(cells) }]);
      const whole = { ...data, runs: { toy24: { header, tensors: Object.fromEntries(blocks) } } };
      const tables = Object.entries(whole).map(
        ([name, table]) => `<script type="application/json" data-book="${name}">${inert(table)}</script>`,
      );
      return html
        .replace("<!--BOOK-CHAPTERS-->", () => chapters)
        .replace("<!--BOOK-DATA-->", () => tables.join("\n"));
    },
  };
}
