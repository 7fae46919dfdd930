import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";
import { fixtureData, seal, woff2Only } from "./build/plugins.ts";

const root = import.meta.dirname;

export default defineConfig({
  root,
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    outDir: "../src/glassformer/page/bundle",
    emptyOutDir: false,
    reportCompressedSize: false,
    modulePreload: false,
  },
  plugins: [woff2Only(), viteSingleFile(), seal(root), fixtureData(root)],
});
