/** A destination for pieces, in order. */
export interface ByteSink {
  /** Writes a piece; text as UTF-8. The caller MUST await a returned promise before the next piece. */
  write(piece: Uint8Array | string): Promise<void> | undefined;
}
