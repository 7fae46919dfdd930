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

/** Puts policy, stamp and notices into the finished page; runs after everything has been inlined. */
export function seal(root: string): Plugin {
  return {
    name: "glassformer:seal",
    enforce: "post",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        const page = bundle["index.html"];
        if (page?.type !== "asset") throw new Error("the build made no index.html");
        const html = String(page.source);
        const marks = `<meta http-equiv="Content-Security-Policy" content="${policy(html)}">
    <meta name="glassformer-source" content="${stamp(root)}">`;
        for (const mark of ["<!--GLASSFORMER-CSP-->", "<!--GLASSFORMER-NOTICES-->", "<!--GLASSFORMER-DATA-->"]) {
          if (html.split(mark).length !== 2) throw new Error(`the page must hold ${mark} exactly once`);
        }
        page.source = html
          .replace("<!--GLASSFORMER-CSP-->", () => marks)
          .replace("<!--GLASSFORMER-NOTICES-->", () => `<!--\n${notices(root)}\n-->`);
      },
    },
  };
}

/** While developing (`npm run dev`), shows the fixture trace. */
export function fixtureData(root: string): Plugin {
  return {
    name: "glassformer:fixture",
    apply: "serve",
    transformIndexHtml(html) {
      const { header, tensors } = JSON.parse(readFileSync(join(root, "fixtures", "toy24.json"), "utf8"));
      const escape = (text: string): string =>
        text.replace(/[&<>]/g, (mark) => "\\u" + mark.charCodeAt(0).toString(16).padStart(4, "0"));
      const blocks = Object.entries<number[]>(tensors).map(([key, cells]) => {
        const numbers = Float64Array.from(cells, (cell) => cell ?? -Infinity);
        const text = Buffer.from(numbers.buffer).toString("base64");
        return `<script type="application/octet-stream" data-key="${key}" data-dtype="f8">${text}</script>`;
      });
      const json = `<script type="application/json" id="glassformer-header">${escape(JSON.stringify(header))}</script>`;
      return html.replace("<!--GLASSFORMER-DATA-->", () => [json, ...blocks].join("\n"));
    },
  };
}
