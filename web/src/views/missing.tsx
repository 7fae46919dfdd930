/** What the page does not hold or will not do: said where the number would stand, with the command that brings it. */
import { recompute } from "../state/actions.ts";
import { traceCommand } from "../state/command.ts";
import { useSession, useSpeech, useStore, type Session } from "../state/session.ts";
import { pythonName } from "../state/keys.ts";

/** The command that writes a page with every number: the run, its text and its step as when this page was written. */
function commandFor({ header }: Session): string {
  const megabytes = Math.ceil((header.left_out?.needed ?? 0) / 1e6);
  const probes = header.probes === undefined ? [] : ["--probes"];
  return traceCommand(header, [...probes, "--html", "PAGE.html", "--page-size", String(megabytes)]);
}

/** In place of a tensor that is not in the page. */
export function Missing({ keyName }: { keyName: string }) {
  const session = useSession();
  const { t } = useSpeech();
  const busy = useStore((state) => state.busy);
  const { header, engine } = session;
  return (
    <div class="missing" data-missing={keyName}>
      <p>
        <b>{t("notRecorded")}</b>. {header.left_out && t("leftOut", { megabytes: Math.round(header.left_out.limit / 1e6) })}
      </p>
      {engine.pace === "recorded" ? (
        header.left_out && (
          <p>
            {t("bringIt")} <code>{commandFor(session)}</code>
          </p>
        )
      ) : (
        <button type="button" disabled={busy} onClick={() => void recompute(session)}>
          {t("computeHere")}
        </button>
      )}
    </div>
  );
}

/** In place of the means to change a run that is too large to be computed again. */
export function TooLarge() {
  const { engine, header, structure } = useSession();
  const { t } = useSpeech();
  const millions = Math.round(engine.operations() / 1e6).toLocaleString("en");
  const id = engine.parameters.at(0) ?? "embed.E";
  const axes = structure.quantity.get(id)?.axes.map(() => 0) ?? [];
  return (
    <p class="quiet small too-large">
      {t("tooLarge", { millions })}{" "}
      <code>{traceCommand(header, ["--set", `${pythonName(id, axes)}=0.5`, "--html", "PAGE.html"])}</code>
    </p>
  );
}
