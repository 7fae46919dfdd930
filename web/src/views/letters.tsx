/** Which letter runs along the rows of a table and which along its columns, with their meaning in the title. */
import type { Axis } from "../data/types.ts";
import type { Text } from "../i18n.ts";
import { useSpeech, type Speech } from "../state/session.ts";
import type { Plane } from "../state/slices.ts";

const LETTERS = ["i", "j", "m", "h", "k", "r", "q", "c", "e", "f", "w", "v", "s", "a"] as const;

/** What a letter runs over, in words; the letter itself where it is not of the legend. */
export function meaningOf(letter: string, t: Speech["t"]): string {
  const known = LETTERS.find((each) => each === letter);
  return known ? t(`letter_${known}`) : letter;
}

export function Letters({ plane }: { plane: Plane }) {
  const { t } = useSpeech();
  const told = (text: Text, axis: Axis | null): string =>
    axis ? t(text, { letter: axis[0], meaning: meaningOf(axis[0], t) }) : "";
  const title = [told("rowsAre", plane.rowAxis), told("columnsAre", plane.columnAxis)].filter(Boolean).join("; ");
  const letters = [plane.rowAxis, plane.columnAxis].flatMap((axis) => (axis ? [axis[0]] : []));
  return (
    <abbr class="letters" title={title}>
      {letters.join(" ∖ ")}
    </abbr>
  );
}
