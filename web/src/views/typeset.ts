/** Drawing LaTeX with KaTeX under a policy that allows no style attributes. */
import { __renderToDomTree as renderToTree, type KatexOptions } from "katex";

declare module "katex" {
  /** KaTeX's own tree of a formula, before it becomes elements. */
  interface FormulaTree {
    attributes?: Record<string, string>;
    children?: FormulaTree[];
    toNode(): Node;
  }
  // Not among KaTeX's declared functions, but exported on purpose; the version is pinned.
  export function __renderToDomTree(tex: string, options: KatexOptions): FormulaTree;
}

type Tree = ReturnType<typeof renderToTree>;

/**
 * Tall fences are drawings whose width stands twice, as an attribute and as a style attribute; the latter (and the
 * colour of an error) would be refused by the page's policy, with a message in the console for each.
 */
function withoutStyleAttributes(tree: Tree): Tree {
  if (tree.attributes) delete tree.attributes["style"];
  tree.children?.forEach(withoutStyleAttributes);
  return tree;
}

const OPTIONS: KatexOptions = {
  // Inline with large operators: unlike a display, such a formula may break between its terms.
  displayMode: false,
  throwOnError: false,
  strict: false,
  // Marks operands, and can do nothing else.
  trust: (context) => context.command === "\\htmlData",
  maxExpand: 2000,
  maxSize: 20,
};

/** Formulas drawn before. A choice brings many symbols that the one before had too, and a copy costs a tenth. */
const drawn = new Map<string, Node>();
const MOST_DRAWN = 1000;

function draw(source: string): Node {
  const known = drawn.get(source);
  if (known) return known;
  if (drawn.size >= MOST_DRAWN) drawn.clear();
  const node = withoutStyleAttributes(renderToTree(source, OPTIONS)).toNode();
  drawn.set(source, node);
  return node;
}

/** Draws `tex` into `element`; what is wrong with it is shown as its source. */
export function typeset(element: HTMLElement, tex: string, display: boolean): void {
  element.replaceChildren(draw(display ? `\\displaystyle ${tex}` : tex).cloneNode(true));
}
