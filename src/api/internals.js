/** What benchmarks, models, and the programs that make fixtures and cases use beyond the exports. Not in the package. */

export { MemberMarks, scanCanonical } from '../base/json/scan.js';
export { BatchVerifier } from '../fast/signature/batch-verifier.js';
export { Ed25519Tables, KeyUse, LARGE, SMALL } from '../fast/signature/ed25519-tables.js';
export { buildCheckpoint } from '../format/event/build.js';
export { identifyEvent } from '../format/event/identity.js';
export { makePublicKey } from '../format/key/public-key.js';
export { formatCheckpoint } from '../format/note/checkpoint.js';
export { signNote } from '../format/note/note-key.js';
export { formatNote } from '../format/note/signed-note.js';
export { findMember, hashEvent } from '../format/record/event-bytes.js';
export { checkEvent, checkRecord } from '../format/schema/check.js';
export { PAYLOAD_TYPE, preAuthEncoding } from '../format/signature/dsse.js';
export { eventMessage } from '../format/signature/event-signature.js';
export { nodeBackend } from '../format/signature/node-backend.js';
export {
  appendLeaf,
  emptyRange,
  hashToBase64url,
  leafHash,
  rangeRoot,
} from '../format/tree/compact-range.js';
export { Outbox } from '../hosts/shared/live/outbox.js';
export { nodeFileSystem } from '../log/fs/file-system.js';
export { openLedgerSource } from '../log/fs/source.js';
export { Notices } from '../log/postgres/notices.js';
export { PostgresStore } from '../log/postgres/postgres-store.js';
export { balancesOf } from '../rules/bounds/balance.js';
export { IdIndex } from '../rules/verify/id-index.js';
