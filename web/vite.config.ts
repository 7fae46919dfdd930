import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";
import { fixtureBook, fixtureData, seal, woff2Only } from "./build/plugins.ts";

const root = import.meta.dirname;

// Two pages, each one file with everything inside: `vite build` makes that of a trace, `vite build --mode book` the book.
export default defineConfig(({ mode }) => {
  const book = mode === "book";
  return {
    root,
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      target: "es2022",
      outDir: "../src/glassformer/page/bundle",
      emptyOutDir: false,
      reportCompressedSize: false,
      modulePreload: false,
      ...(book ? { rollupOptions: { input: `${root}/book.html` } } : {}),
    },
    plugins: [
      woff2Only(),
      viteSingleFile(),
      book
        ? seal(root, "book.html", ["<!--BOOK-CHAPTERS-->", "<!--BOOK-DATA-->"])
        : seal(root, "index.html", ["<!--GLASSFORMER-DATA-->"]),
      fixtureData(root),
      fixtureBook(root),
    ],
  };
});
