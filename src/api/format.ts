/**
 * `northroot/format`: the parts of a ledger and what can be said of one part alone. Canonical JSON, values, events, keys and
 * signatures, lines, signed notes. It opens no file. `northroot` exports all of this too.
 */

export * from './core.js';

// JSON of other systems (SPEC §1)
export type { HygieneReport, HygieneStatus } from '../base/json/hygiene.js';
export {
  ingestJson,
  type IngestCode,
  type Ingested,
  type IngestIssue,
  type NumberMode,
} from '../base/json/ingest.js';

// Values (SPEC §2)
export { meters, type AmountsByUnit, type Meter, type MeterVector } from '../base/value/meter.js';
export type { Rational } from '../base/value/rational.js';

// Events (SPEC §3)
export { buildEvent, type AnyEvent, type Draft, type EventDefaults } from '../format/event/build.js';

// Private keys and signatures (SPEC §5, §7)
export {
  formatPrivateKey,
  generatePrivateKey,
  parsePrivateKey,
  type PrivateKey,
  type PrivateKeyForm,
} from '../format/key/private-key.js';
export { createSigner, signEvent, type Signer } from '../format/signature/signer.js';
export type { Role } from '../rules/trust/authority.js';
export { parsePasskey, type Passkey } from '../format/key/passkey.js';
export { makeKeyEntry, type KeyEntryOptions } from '../rules/trust/key-entry.js';
export { listPasskeyGaps, type PasskeyGap } from '../rules/trust/passkey-gaps.js';

// The ledger file (SPEC §4)
export { formatRecord, type RecordParts } from '../format/record/record.js';
