/** Where pieces go, in order. */
export interface ByteSink {
  /** Takes a piece; text is UTF-8. What it returns is waited for before the next piece; undefined: there is room for more. */
  write(piece: Uint8Array | string): Promise<void> | undefined;
}
