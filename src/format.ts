/**
 * `northroot/format`: what a ledger is made of, byte by byte, and all that can be said of one part of it alone. Canonical JSON,
 * values, events, keys and signatures, lines, signed notes. It opens no file. Everything here is exported by `northroot` too.
 */

export { NorthrootError, type NorthrootErrorOptions } from './error.js';
export type { Fault, FileFault, Result, ValueFault } from './fault.js';

// Canonical JSON (SPEC §1)
export { canonicalBytes, canonicalText } from './json/canonicalize.js';
export { diagnoseCanonical, parseCanonical, type JsonFault, type JsonFaultCode } from './json/diagnose.js';
export { type HygieneReport, type HygieneStatus } from './json/hygiene.js';
export {
  ingestJson,
  type IngestCode,
  type Ingested,
  type IngestIssue,
  type NumberMode,
} from './json/ingest.js';
export { JsonTextSplitter, placeInText, type JsonText, type TextPlace } from './json/split-texts.js';
export { CANONICAL_PROFILE_ID } from './json/profile.js';
export { type JsonObject, type JsonValue } from './json/value.js';

// Values (SPEC §2)
export {
  digestFromBase64url,
  formatDigest,
  fromDigestText,
  isDigest,
  parseDigest,
  sha256Digest,
  shortenDigestText,
  toDigestText,
  tryParseDigest,
  type Digest,
} from './value/digest.js';
export {
  MAX_METERS,
  isUnit,
  meters,
  readAmounts,
  type AmountProblem,
  type AmountsByUnit,
  type Meter,
  type MeterVector,
} from './value/meter.js';
export { isPrincipalId, isPrincipalPattern, matchesPrincipalPattern } from './value/principal.js';
export {
  compareQuantities,
  formatQuantity,
  fromRational,
  isNegativeQuantity,
  quantity,
  quantityFromNumberText,
  quantityProblem,
  toRational,
  type Quantity,
} from './value/quantity.js';
export {
  MAX_DENOMINATOR_DIGITS,
  addRationals,
  compareRationals,
  exceedsDenominatorLimit,
  reduceRational,
  subtractRationals,
  type Rational,
} from './value/rational.js';
export { isRateUnit, tryParseRateUnit, type RateUnit } from './value/rate.js';
export { compareTimestamps, formatInstant, isTimestamp, parseTimestamp } from './value/timestamp.js';
export { resolvePastTime, resolveTime, tryReadTime } from './value/when.js';
export {
  coversToolPattern,
  escapeToolName,
  isToolName,
  isToolPattern,
  matchesToolPattern,
} from './value/tool.js';

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
} from './event/build.js';
export { EVENT_ID_PREFIX, eventId, payloadDigest } from './event/identity.js';
export { resolveReferences } from './event/references.js';
export { EventError, assertEvent, validateEvent, type EventFaultCode } from './event/validate.js';
export { schemaDocument, schemaNames } from './schema/documents.js';
export { checkKey, checkReport, checkTrustPolicy, type ShapeCode } from './schema/check.js';
export type * from './schema/generated/types.js';

// Keys and signatures (SPEC §5, §7)
export { MAX_KEY_BYTES, type KeyAlgorithm } from './key/key-form.js';
export {
  formatPrivateKey,
  generatePrivateKey,
  parsePrivateKey,
  type PrivateKey,
  type PrivateKeyForm,
} from './key/private-key.js';
export {
  checkPublicKey,
  formatPublicKey,
  formatPublicKeyAs,
  makePublicKey,
  parsePublicKey,
  type PublicKey,
  type PublicKeyFault,
  type PublicKeyForm,
} from './key/public-key.js';
export { isKeyName } from './key/vkey.js';
export { decodeWireKey } from './key/wire-key.js';
export {
  PAYLOAD_TYPE,
  fromDsseEnvelope,
  preAuthEncoding,
  toDsseEnvelope,
  type DsseEnvelope,
  type EventSignature,
  type FindAlgorithm,
  type SignedEvent,
} from './signature/dsse.js';
export { nobleBackend } from './signature/noble-backend.js';
export { nodeBackend } from './signature/node-backend.js';
export { createSigner, signEvent, type Signer } from './signature/signer.js';
export { type VerificationKey, type SignatureBackend } from './signature/backend.js';
export {
  findEntitledKeys,
  makeKeyEntry,
  type KeyEntryOptions,
  type SigningContext,
} from './trust/key-entry.js';
export { type Role } from './trust/authority.js';
export { MAX_TRUST_POLICY_BYTES, parseTrustPolicy } from './trust/trust-policy.js';

// The ledger file (SPEC §4)
export {
  MAX_META_BYTES,
  type ExaminedLine,
  type Layout,
  type LineFacts,
  type SignatureEntry,
  type WellFormedLine,
} from './ledger/examine-line.js';
export { type EventTypes, type TypeName } from './event/typed-event.js';
export { LineSplitter, MAX_LINE_BYTES, type RawLine } from './ledger/line-splitter.js';
export { formatRecord, type RecordParts } from './ledger/record.js';

// Signed notes, checkpoints and their keys (C2SP signed-note, tlog-checkpoint, tlog-cosignature)
export {
  formatCheckpoint,
  parseCheckpoint,
  type Checkpoint,
  type SignedCheckpoint,
} from './note/checkpoint.js';
export { verifyNoteSignatures, type NoteVerification, type NoteSigner } from './note/verify-note.js';
export {
  canBeLogKey,
  canBeWitnessKey,
  cosignNote,
  formatNoteKey,
  isSignedBy,
  makeNoteKey,
  parseNoteKey,
  signNote,
  type NoteKey,
} from './note/note-key.js';
export {
  MAX_NOTE_BYTES,
  formatNote,
  parseNote,
  type NoteSignature,
  type SignedNote,
} from './note/signed-note.js';
