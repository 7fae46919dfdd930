/** What the page does not hold or will not do: said where the number would stand, with the command that brings it. */
import { recompute } from "../state/actions.ts";
import { useSession, useSpeech, useStore, type Session } from "../state/session.ts";
import { pythonName } from "../state/keys.ts";

/** The command that writes a page with every number; SUBJECT and the rest as when this page was written. */
function commandFor({ header }: Session): string {
  const megabytes = Math.ceil((header.left_out?.needed ?? 0) / 1e6);
  return `glassformer trace RUN TEXT --html PAGE.html --page-size ${megabytes}`;
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
  const { engine, structure } = useSession();
  const { t } = useSpeech();
  const millions = Math.round(engine.operations() / 1e6).toLocaleString("en");
  const id = engine.parameters.at(0) ?? "embed.E";
  const axes = structure.quantity.get(id)?.axes.map(() => 0) ?? [];
  return (
    <p class="quiet small too-large">
      {t("tooLarge", { millions })}{" "}
      <code>{`glassformer trace RUN TEXT --set "${pythonName(id, axes)}=0.5" --html PAGE.html`}</code>
    </p>
  );
}
