/** Codes of another system, for decisions of one's own. */

import { codeOf } from '../names.js';

/** What these say of a decision is a ledger's own word. */
const OWN: ReadonlySet<string> = new Set(['APPROVAL_REQUIRED', 'APPROVAL_REJECTED', 'ALLOW', 'ABANDONED']);

/** The code, with the system's name before it where it would be taken for one of the ledger. */
export function foreignCode(prefix: string, name: string): string {
  const code = codeOf(name);
  return OWN.has(code) ? codeOf(`${prefix}_${code}`) : code;
}
