/** Keys of the book: the presenter's, and a few that work anywhere outside a field. */
import type { Book } from "./state.ts";
import type { Way } from "./way.ts";

const FORWARD = new Set(["ArrowRight", "ArrowDown", "PageDown", " "]);
const BACK = new Set(["ArrowLeft", "ArrowUp", "PageUp"]);

export function onKey(event: KeyboardEvent, book: Book, way: Way): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const at = event.target;
  const inField = at instanceof Element && at.closest("input, textarea, select, dialog") !== null;
  if (inField) return;
  const { presented } = book.store.get();
  if (presented === null) {
    if (event.key !== "/") return;
    event.preventDefault();
    book.store.set({ searching: true });
    return;
  }
  // A button under the keyboard is pressed by space; it does not turn the page as well.
  const pressing = event.key === " " && at instanceof Element && at.closest("button, summary, [role=button]") !== null;
  if (pressing) return;
  if (event.key === "Escape") way.present(null);
  else if (FORWARD.has(event.key)) way.present(presented + 1);
  else if (BACK.has(event.key)) way.present(presented - 1);
  else return;
  event.preventDefault();
}
