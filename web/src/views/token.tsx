/** A token's text for the eye: pictures of control characters are spelt out, because few fonts can draw them. */

const NAMES =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US SP DEL".split(
    " ",
  );

/** `text` as `picture` made it: characters of the block U+2400 become small names, everything else stays. */
export function TokenText({ text }: { text: string }) {
  return (
    <>
      {text.split(/([\u2400-\u2421])/).map((piece, at) =>
        at % 2 === 0 ? (
          piece
        ) : (
          <span key={at} class="picture" data-name={NAMES[piece.charCodeAt(0) - 0x2400]}>
            <span class="sr">{piece}</span>
          </span>
        ),
      )}
    </>
  );
}
