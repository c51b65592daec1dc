/** Texts that a page must show as they are, and obey in nothing. */
export const HOSTILE: readonly string[];

/** The ledger's bytes. */
export function hostileLedger(more?: readonly string[]): Buffer;
