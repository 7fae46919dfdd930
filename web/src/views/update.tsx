/** One update: what it changed, what first order had promised, and what the wrong order would have given. */
import { useMemo, useState } from "preact/hooks";
import { flatOf, keyOf } from "../state/keys.ts";
import { tokenText } from "../state/leaves.ts";
import { useSession, useSpeech, useStore, type Session } from "../state/session.ts";
import type { Cell } from "../state/store.ts";
import { tensorTex } from "../state/symbols.ts";
import { rough, short } from "../state/text.ts";
import { CellLink } from "./arithmetic.tsx";
import { Curve } from "./chart.tsx";
import { Formula, Tex } from "./formula.tsx";
import { TokenText } from "./token.tsx";

interface UpdateNumbers {
  groups: { id: string; predicted: number; alone: number }[];
  predicted: number;
  exact: number;
  joint: number;
  sequential: { loss: number; different: readonly string[] };
  line: { eta: number[]; loss: number[] };
  slope: number;
}

const POINTS = 32;

/** The same quantities as the trace's `update`, computed here from the numbers as they now are. */
function computeUpdate({ engine, header }: Session): UpdateNumbers {
  const groups = engine.parameters.map((id) => ({ id, predicted: engine.predicted(id), alone: 0 }));
  const before = engine.value("loss.L")[0];
  const joint = engine.value("loss.L.after")[0];
  for (const group of groups) group.alone = engine.lossAfterOnly([group.id]) - before;
  const recorded = header.update?.line.eta ?? [];
  const last = Math.max(recorded.at(-1) ?? 0, 2 * engine.scalar("eta")) || 1;
  const eta = Array.from({ length: POINTS + 1 }, (_, k) => (last * k) / POINTS);
  const predicted = groups.reduce((total, group) => total + group.predicted, 0);
  return {
    groups,
    predicted,
    exact: joint - before,
    joint,
    sequential: engine.sequential(),
    line: { eta, loss: eta.map((each) => engine.lossAlong(each)) },
    slope: engine.slope(),
  };
}

/** Figures of a header: null stands for what left the range of numbers. */
function number(x: number | null): number {
  return x ?? Number.NaN;
}

function recordedUpdate({ header, engine }: Session): UpdateNumbers | null {
  const { update } = header;
  if (!update) return null;
  const joint = number(update.joint_loss);
  // First order is proportional to the learning rate, so its promise says the slope.
  const promised = number(update.predicted) / update.eta;
  return {
    groups: update.groups.map(({ id, predicted, alone }) => ({ id, predicted: number(predicted), alone: number(alone) })),
    predicted: number(update.predicted),
    exact: number(update.exact),
    joint,
    sequential: { ...update.sequential, loss: number(update.sequential.loss) },
    line: { eta: update.line.eta, loss: update.line.loss.map(number) },
    slope: Number.isFinite(promised) ? promised : engine.slope(),
  };
}

/** Cells worth watching: the coefficient a₂₁ of small runs, the probabilities of the scored rows, the loss. */
function watched({ engine }: Session): Cell[] {
  const cells: Cell[] = [];
  const rows = engine.targets().flatMap((target, row) => (target === null ? [] : [{ target, row }]));
  const last = rows.at(-1);
  const first = engine.keys.find((key) => key.endsWith(".attn.A"));
  if (first && last) {
    const shape = engine.shape(first);
    const row = flatOf([0, last.row, 0], shape);
    // The first position that the row may read at all.
    const read = engine.holds(first) ? engine.value(first).subarray(row, row + shape[2]).findIndex((a) => a > 0) : 0;
    cells.push({ key: first, flat: row + Math.max(0, read) });
  }
  const size = engine.scalar("N");
  for (const { row, target } of rows.slice(0, 8)) {
    const candidates = size <= 6 ? Array.from({ length: size }, (_, w) => w) : [target];
    for (const candidate of candidates) cells.push({ key: "head.p", flat: row * size + candidate });
  }
  cells.push({ key: "loss.L", flat: 0 });
  return cells.filter(({ key }) => engine.holds(key) && engine.holds(keyOf(key, "after")));
}

function BeforeAfter() {
  const session = useSession();
  const { t } = useSpeech();
  const labels = useStore((state) => state.labels);
  useStore((state) => state.version);
  const size = session.engine.scalar("N");
  return (
    <table class="figures">
      <caption>{t("beforeAfter")}</caption>
      <thead>
        <tr>
          <th scope="col">{t("quantity")}</th>
          <th scope="col">{t("before")}</th>
          <th scope="col">{t("after")}</th>
          <th scope="col">{t("changeNoun")}</th>
        </tr>
      </thead>
      <tbody>
        {watched(session).map((cell) => {
          const before = session.engine.value(cell.key)[cell.flat];
          const after = session.engine.value(keyOf(cell.key, "after"))[cell.flat];
          return (
            <tr key={`${cell.key}:${cell.flat}`}>
              <th scope="row">
                <CellLink cell={cell} value={false} />
                {cell.key === "head.p" && (
                  <span class="quiet">
                    {" "}
                    “<TokenText text={tokenText(session, cell.flat % size, labels)} />”
                  </span>
                )}
              </th>
              <td class="digits">{short(before, 6)}</td>
              <td class="digits">{short(after, 6)}</td>
              <td class="digits">{short(after - before, 6)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** Up to this many parameters are listed at once: those that matter most for the loss. */
const FEW_GROUPS = 10;

function Groups({ numbers }: { numbers: UpdateNumbers }) {
  const session = useSession();
  const { t, pick } = useSpeech();
  const printing = useStore((state) => state.printing);
  const [all, setAll] = useState(false);
  const { groups } = numbers;
  const sorted = [...groups].sort((a, b) => Math.abs(b.predicted) - Math.abs(a.predicted));
  const shown = all || printing || groups.length <= FEW_GROUPS ? groups : sorted.slice(0, FEW_GROUPS);
  return (
    <table class="figures">
      <caption>{t("firstOrder")}</caption>
      <thead>
        <tr>
          <th scope="col">{t("parameter")}</th>
          <th scope="col">{t(session.engine.plainDescent ? "predicted" : "predictedStep")}</th>
          <th scope="col">{t("exactAlone")}</th>
        </tr>
      </thead>
      <tbody>
        {shown.map(({ id, predicted, alone }) => (
          <tr key={id}>
            <th scope="row" title={id}>
              <Tex tex={tensorTex(session, id)} /> <span class="quiet small">{pick(session.engine.quantity(id))}</span>
            </th>
            <td class="digits">{short(predicted, 6)}</td>
            <td class="digits">{short(alone, 6)}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        {shown.length < groups.length && (
          <tr>
            <td colSpan={3}>
              <button type="button" class="plain" onClick={() => setAll(true)}>
                {t("allGroups", { count: groups.length })}
              </button>
            </td>
          </tr>
        )}
        <tr>
          <th scope="row">{t("allTogether")}</th>
          <td class="digits">{short(numbers.predicted, 6)}</td>
          <td class="digits">{short(numbers.exact, 6)}</td>
        </tr>
      </tfoot>
    </table>
  );
}

/** A group of parameters in words: a block, or all parts of one name (norms are one part). */
function GroupName({ group }: { group: string }) {
  const { t, pick } = useSpeech();
  const { structure } = useSession();
  const block = /^blocks\.(\d+)$/.exec(group);
  if (block) return <>{t("block", { number: Number(block[1]) + 1 })}</>;
  const part = structure.parts.find(({ id }) => id.slice(id.lastIndexOf(".") + 1).replace(/\d+$/, "") === group);
  return <>{part ? pick(part.title) : group}</>;
}

/** The exact change shared out among groups of parameters, as it was recorded. */
function Shares() {
  const session = useSession();
  const { t } = useSpeech();
  const edited = useStore((state) => state.edited);
  const { update } = session.header;
  const { attribution } = update ?? {};
  if (!update || !attribution) return null;
  const sampled = attribution.orders !== null;
  return (
    <table class="figures shares">
      <caption>
        {t("shares")} {edited && t("beforeEdit")}
      </caption>
      <thead>
        <tr>
          <th scope="col">{t(attribution.by === "tensor" ? "parameter" : "group")}</th>
          <th scope="col">{t("share")}</th>
          {sampled && <th scope="col">±</th>}
        </tr>
      </thead>
      <tbody>
        {attribution.shares.map(({ group, members, shapley, error }) => (
          <tr key={group}>
            <th scope="row" title={members.join(" ")}>
              {attribution.by === "tensor" ? <Tex tex={tensorTex(session, group)} /> : <GroupName group={group} />}
            </th>
            <td class="digits">{short(number(shapley), 6)}</td>
            {sampled && <td class="digits">{rough(number(error))}</td>}
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">{t("allTogether")}</th>
          <td class="digits">{short(number(update.exact), 6)}</td>
          {sampled && <td />}
        </tr>
        <tr>
          <th scope="row">{t("missed")}</th>
          <td class="digits">{short(number(update.exact) - number(update.predicted), 6)}</td>
          {sampled && <td />}
        </tr>
      </tfoot>
    </table>
  );
}

/** Parameters whose gradients were equal in the trace. */
function Coincidences() {
  const session = useSession();
  const { t } = useSpeech();
  const edited = useStore((state) => state.edited);
  return (
    <>
      {(session.header.update?.coincidences ?? []).map(({ a, b, apart_after: apart }) => (
        <p class="quiet small" key={`${a} ${b}`}>
          <Tex tex={tensorTex(session, a, "grad")} />, <Tex tex={tensorTex(session, b, "grad")} />:{" "}
          {t(apart === 0 ? "sameGradient" : "sameByAccident", { apart: apart === null ? "?" : short(apart, 6) })}{" "}
          {edited && t("beforeEdit")}
        </p>
      ))}
    </>
  );
}

function WrongOrder({ numbers }: { numbers: UpdateNumbers }) {
  const session = useSession();
  const { t } = useSpeech();
  const { loss, different } = numbers.sequential;
  return (
    <div class="wrong-order">
      <h3>{t("jointOrNot")}</h3>
      <p>{t("jointMeans")}</p>
      <table class="figures">
        <tbody>
          <tr>
            <th scope="row">{t("jointLoss")}</th>
            <td class="digits">{short(numbers.joint, 9)}</td>
          </tr>
          <tr>
            <th scope="row">{t("sequentialLoss")}</th>
            <td class="digits">{short(loss, 9)}</td>
          </tr>
          <tr>
            <th scope="row">{t("difference")}</th>
            <td class="digits">{rough(loss - numbers.joint)}</td>
          </tr>
        </tbody>
      </table>
      <p class="quiet small">
        {t(different.length > 0 ? "sequentialDiffers" : "sequentialSame")}
        {different.map((id) => (
          <>
            {" "}
            <Tex tex={tensorTex(session, id)} />
          </>
        ))}
      </p>
    </div>
  );
}

export function UpdatePanel() {
  const session = useSession();
  const { t } = useSpeech();
  const version = useStore((state) => state.version);
  const edited = useStore((state) => state.edited);
  const busy = useStore((state) => state.busy);
  const [asked, setAsked] = useState(-1);
  const live = session.engine.pace === "live" || asked === version;
  const numbers = useMemo(
    () => (live ? computeUpdate(session) : edited ? null : recordedUpdate(session)),
    [live, edited, version],
  );
  const { engine } = session;
  return (
    <section class="update-panel" aria-label={t("update")}>
      <h2>{t("oneUpdate")}</h2>
      <p class="note">{t(engine.plainDescent ? "updateMeans" : "optimizerMeans")}</p>
      {engine.plainDescent && <Formula tex={"\\theta^{\\text{new}} = \\theta - \\eta\\, \\bar\\theta"} />}
      <div class="update-tables">
        <BeforeAfter />
        {numbers ? (
          <>
            <Groups numbers={numbers} />
            <Shares />
            <Coincidences />
            <figure>
              <figcaption>{t(engine.plainDescent ? "curve" : "curveStep")}</figcaption>
              <Curve {...numbers.line} slope={numbers.slope} now={{ eta: engine.scalar("eta"), loss: numbers.joint }} />
              <p class="quiet small">{t(engine.plainDescent ? "curveMeans" : "curveStepMeans")}</p>
            </figure>
            <WrongOrder numbers={numbers} />
          </>
        ) : (
          engine.pace !== "recorded" && (<p>
            {t("updateAsk")}{" "}
            <button type="button" disabled={busy} onClick={() => setAsked(version)}>
              {t("computeNow")}
            </button>
          </p>)
        )}
      </div>
    </section>
  );
}
