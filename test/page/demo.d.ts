/** The ledger's bytes and the note of its last checkpoint. */
export function makeDemo(): { readonly bytes: Buffer; readonly note: Buffer };
