/**
 * `northroot/format`: what a ledger is made of, byte by byte, and all that can be said of one part of it alone. Canonical JSON,
 * values, events, keys and signatures, lines, signed notes. It opens no file. Everything here is exported by `northroot` too.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';
export type { Fault, FileFault, Result, ValueFault } from '../base/fault.js';

// Canonical JSON (SPEC §1)
export { canonicalBytes, canonicalText } from '../base/json/canonicalize.js';
export {
  diagnoseCanonical,
  parseCanonical,
  type JsonFault,
  type JsonFaultCode,
} from '../base/json/diagnose.js';
export { type HygieneReport, type HygieneStatus } from '../base/json/hygiene.js';
export {
  ingestJson,
  type IngestCode,
  type Ingested,
  type IngestIssue,
  type NumberMode,
} from '../base/json/ingest.js';

export { type CANONICAL_PROFILE_ID } from '../base/json/profile.js';
export { type JsonObject, type JsonValue } from '../base/json/value.js';

// Values (SPEC §2)
export { formatDigest, parseDigest, sha256Digest, type Digest } from '../base/value/digest.js';
export { meters, type AmountsByUnit, type Meter, type MeterVector } from '../base/value/meter.js';

export { compareQuantities, formatQuantity, quantity, type Quantity } from '../base/value/quantity.js';
export { type Rational } from '../base/value/rational.js';

export { escapeToolName } from '../base/value/tool.js';

// Events (SPEC §3)
export {
  buildAdjustment,
  buildAttestation,
  buildAuthorization,
  buildCheckpoint,
  buildEvent,
  buildExecution,
  buildGenesis,
  buildKeyEvent,
  type AnyEvent,
  type Draft,
  type EventDefaults,
} from '../format/event/build.js';
export { eventId, payloadDigest } from '../format/event/identity.js';

export { EventError, assertEvent, validateEvent, type EventFaultCode } from '../format/event/validate.js';
export { schemaDocument, schemaNames } from '../format/schema/documents.js';
export { type ShapeCode } from '../format/schema/check.js';
export type * from '../format/schema/generated/types.js';

// Keys and signatures (SPEC §5, §7)
export { type KeyAlgorithm } from '../format/key/key-form.js';
export {
  formatPrivateKey,
  generatePrivateKey,
  parsePrivateKey,
  type PrivateKey,
  type PrivateKeyForm,
} from '../format/key/private-key.js';
export { formatPublicKey, parsePublicKey, type PublicKey } from '../format/key/public-key.js';

export {
  PAYLOAD_TYPE,
  fromDsseEnvelope,
  preAuthEncoding,
  toDsseEnvelope,
  type DsseEnvelope,
  type EventSignature,
  type FindAlgorithm,
  type SignedEvent,
} from '../format/signature/dsse.js';
export { nobleBackend } from '../format/signature/noble-backend.js';

export { createSigner, signEvent, type Signer } from '../format/signature/signer.js';
export { type VerificationKey, type SignatureBackend } from '../format/signature/backend.js';
export { makeKeyEntry, type KeyEntryOptions } from '../rules/trust/key-entry.js';
export { type Role } from '../rules/trust/authority.js';
export { parseTrustPolicy } from '../rules/trust/trust-policy.js';

// The ledger file (SPEC §4)
export {
  type ExaminedLine,
  type Layout,
  type LineFacts,
  type SignatureEntry,
  type WellFormedLine,
} from '../format/record/examine-line.js';
export { type EventTypes, type TypeName } from '../format/event/typed-event.js';
export { LineSplitter, MAX_LINE_BYTES, type RawLine } from '../format/record/line-splitter.js';
export { formatRecord, type RecordParts } from '../format/record/record.js';

// Signed notes, checkpoints and their keys (C2SP signed-note, tlog-checkpoint, tlog-cosignature)
export {
  formatCheckpoint,
  parseCheckpoint,
  type Checkpoint,
  type SignedCheckpoint,
} from '../format/note/checkpoint.js';
export { verifyNoteSignatures, type NoteVerification, type NoteSigner } from '../format/note/verify-note.js';
export { formatNoteKey, parseNoteKey, type NoteKey } from '../format/note/note-key.js';
export { parseNote, type NoteSignature, type SignedNote } from '../format/note/signed-note.js';
