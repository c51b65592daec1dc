/** What `northroot/format` and `northroot/verify` both export: it needs no file, no network, no private key and nothing of Node. */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';
export type { Fault, FileFault, Result, ValueFault } from '../base/fault.js';

// Canonical JSON (SPEC §1)
export { canonicalBytes, canonicalText } from '../base/json/canonicalize.js';
export type { JsonObject, JsonValue } from '../base/json/value.js';

// Values (SPEC §2)
export { formatDigest, parseDigest, sha256Digest, type Digest } from '../base/value/digest.js';
export { formatQuantity, quantity, type Quantity } from '../base/value/quantity.js';

// Events (SPEC §3)
export { eventId } from '../format/event/identity.js';
export type { EventTypes, TypeName } from '../format/event/typed-event.js';
export { EventError, assertEvent, type EventFaultCode } from '../format/event/validate.js';
export type { ShapeCode } from '../format/schema/check.js';
export type * from '../format/schema/generated/types.js';

// Public keys and signatures (SPEC §5, §7)
export type { KeyAlgorithm } from '../format/key/key-form.js';
export { formatPublicKey, parsePublicKey, type PublicKey } from '../format/key/public-key.js';
export type { SignatureBackend, VerificationKey } from '../format/signature/backend.js';
export { type EventSignature } from '../format/signature/dsse.js';
export { parseTrustPolicy } from '../rules/trust/trust-policy.js';

// The ledger file (SPEC §4)
export type {
  ExaminedLine,
  Layout,
  LineFacts,
  SignatureEntry,
  WellFormedLine,
} from '../format/record/examine-line.js';
export { LineSplitter, type RawLine } from '../format/record/line-splitter.js';

// Signed notes, checkpoints and their keys (C2SP signed-note, tlog-checkpoint, tlog-cosignature)
export { parseCheckpoint, type Checkpoint, type SignedCheckpoint } from '../format/note/checkpoint.js';
export { parseNoteKey, type NoteKey } from '../format/note/note-key.js';
export { type NoteSignature, type SignedNote } from '../format/note/signed-note.js';
export { verifyNoteSignatures, type NoteSigner, type NoteVerification } from '../format/note/verify-note.js';
