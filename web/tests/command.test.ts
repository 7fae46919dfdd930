import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import type { Command, Header } from "../src/data/types.ts";
import { probeCommand, quoted, traceCommand } from "../src/state/command.ts";

const header = (command?: Command, more: Partial<Header> = {}): Header =>
  ({ source: "run", scalars: { eta: 0.1 }, quantities: [], ...(command ? { command } : {}), ...more }) as unknown as Header;

const HARD = [
  "plain-1.5", "two words", "it's", "$HOME `x` \\ \"y\"", "患者 服用。", "a\nb\tc", "\u202egnp", "'\n'", "", "!history", "~", "*", "\u0007",
];

describe("a command to copy", () => {
  test.each(HARD)("means %j to a shell, and shows every character", (word) => {
    const text = quoted(word);
    const got = execFileSync("bash", ["--norc", "-c", `printf %s ${text}`], { encoding: "utf8", env: { LC_ALL: "C.UTF-8" } });
    expect(got).toBe(word);
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  test("repeats the run, its text and its step", () => {
    const command = { subject: "runs/mine", text: "To be, or", options: ["--optimizer", "adamw", "--eta", "0.02"] };
    expect(traceCommand(header(command), ["--probes"])).toBe(
      "glassformer trace runs/mine 'To be, or' --optimizer adamw --eta 0.02 --probes",
    );
    expect(probeCommand(header(command), ["--layer", "1"])).toBe("glassformer probe runs/mine 'To be, or' --layer 1");
  });

  test("keeps a text that begins like an option apart from them", () => {
    const command = { subject: "mine", text: "--json", options: ["--eta", "0.2"] };
    expect(traceCommand(header(command), ["--html", "x"])).toBe("glassformer trace --eta 0.2 --html x -- mine --json");
  });

  test("asks a probe of the small model for its tokens and target, and of a changed model for nothing", () => {
    const command = { subject: "toy24", text: null, options: ["--tokens", "A,A", "--target", "B"] };
    expect(probeCommand(header(command), [])).toBe("glassformer probe toy24 A,A --target B");
    expect(probeCommand(header({ ...command, options: ["--set", "E[0,0]=1"] }), [])).toBeNull();
  });

  test("has placeholders for what nobody recorded, and the optimizer that the statements show", () => {
    expect(traceCommand(header(), ["--json", "x.json"])).toBe("glassformer trace RUN TEXT --eta 0.1 --json x.json");
    const adamw = header(undefined, { quantities: [{ kind: "optimizer state" }] as Header["quantities"] });
    expect(traceCommand(adamw, [])).toBe("glassformer trace RUN TEXT --eta 0.1 --optimizer adamw");
  });
});
