/** The stamp of the page's sources: equal stamps mean that a built page belongs to these sources (see `hatch_build.py`). */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDERS = ["build", "src"];
const FILES = ["book.html", "index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts"];

function sourcePaths(root: string): string[] {
  const inside = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1).replaceAll("\\", "/")),
  );
  return [...inside, ...FILES].sort((a, b) => (a < b ? -1 : 1));
}

/** sha256 over one line `path NUL sha256(content)` per source file, paths in order of their characters. */
export function stamp(root: string): string {
  const total = createHash("sha256");
  for (const path of sourcePaths(root)) {
    const content = createHash("sha256").update(readFileSync(join(root, path))).digest("hex");
    total.update(`${path}\0${content}\n`);
  }
  return total.digest("hex");
}
