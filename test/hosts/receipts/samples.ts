/** Receipts of each format. */

import { type Json, type JsonMembers, jcs, sha256Hex, type Signer, signText } from './kit.js';

/** A UUID of a number. */
export function uuid(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

/** What differs of a receipt of the protocol Agent Receipts. */
export interface Wanted {
  readonly n?: number;
  readonly chain?: string;
  readonly sequence?: number;
  readonly previous?: string | null;
  readonly issuer?: string;
  readonly method?: string;
  readonly action?: JsonMembers;
  readonly outcome?: JsonMembers;
  readonly link?: JsonMembers;
  readonly subject?: JsonMembers;
  readonly members?: JsonMembers;
}

export const AGENT = 'did:agent:builder';

/** An Agent Receipt without its proof. */
export function unsignedReceipt(wanted: Wanted = {}): JsonMembers {
  const { n = 1, chain = 'chain_one', sequence = n, previous = null, issuer = AGENT } = wanted;
  const time = `2026-05-01T10:00:${String(n % 60).padStart(2, '0')}Z`;
  return {
    '@context': ['https://www.w3.org/ns/credentials/v2', 'https://agentreceipts.ai/context/v2'],
    id: `urn:receipt:${uuid(n)}`,
    type: ['VerifiableCredential', 'AgentReceipt'],
    version: '0.5.0',
    issuer: { id: issuer },
    issuanceDate: time,
    credentialSubject: {
      principal: { id: 'did:user:ada' },
      action: {
        id: `act_${uuid(n)}`,
        type: 'filesystem.file.read',
        risk_level: 'low',
        parameters_hash: `sha256:${sha256Hex(jcs({ path: `/tmp/${n}` }))}`,
        timestamp: time,
        ...wanted.action,
      },
      outcome: { status: 'success', ...wanted.outcome },
      chain: { sequence, previous_receipt_hash: previous, chain_id: chain, ...wanted.link },
      ...wanted.subject,
    },
    ...wanted.members,
  };
}

/** The receipt with its proof. */
export function signed(unsigned: JsonMembers, by: Signer, method = `${AGENT}#key-1`): JsonMembers {
  return {
    ...unsigned,
    proof: {
      type: 'Ed25519Signature2020',
      created: '2026-05-01T11:00:00Z',
      verificationMethod: method,
      proofPurpose: 'assertionMethod',
      proofValue: `u${signText(by, jcs(unsigned))}`,
    },
  };
}

export function receipt(by: Signer, wanted: Wanted = {}): JsonMembers {
  return signed(unsignedReceipt(wanted), by, wanted.method);
}

/** What the next receipt of a chain states of one. */
export function hashOf(from: JsonMembers): string {
  return `sha256:${sha256Hex(jcs(changed(from, ['proof'])))}`;
}

/** A chain of so many receipts. */
export function chainOf(by: Signer, length: number, wanted: Wanted = {}): JsonMembers[] {
  const receipts: JsonMembers[] = [];
  for (let n = 1; n <= length; n++) {
    const before = receipts.at(-1);
    const previous = before === undefined ? null : hashOf(before);
    receipts.push(receipt(by, { previous, ...wanted, n: n + (wanted.n ?? 1) - 1, sequence: n }));
  }
  return receipts;
}

/** The receipt with one member changed after it was signed; undefined takes it away. */
export function changed(from: JsonMembers, path: readonly string[], value?: Json): JsonMembers {
  const [name = '', ...rest] = path;
  if (rest.length > 0) return { ...from, [name]: changed(from[name] as JsonMembers, rest, value) };
  const others = Object.fromEntries(Object.entries(from).filter(([each]) => each !== name));
  return value === undefined ? others : { ...others, [name]: value };
}

/** An Agent Action Receipt without its signature's bytes. */
export function unsignedAar(by: Signer, n = 1, members: JsonMembers = {}): JsonMembers {
  return {
    receiptId: uuid(n),
    agent: { id: 'trader/v1', name: 'Trader' },
    principal: { id: 'user:ada', type: 'user' },
    action: { type: 'api.call', target: 'exchange/orders', method: 'POST', status: 'success' },
    scope: { permissions: ['trade.spot'] },
    inputHash: { alg: 'sha256', digest: Buffer.from(sha256Hex(jcs({ n })), 'hex').toString('base64url') },
    outputHash: { alg: 'sha256', digest: Buffer.from(sha256Hex('done'), 'hex').toString('base64url') },
    timestamp: `2026-03-06T12:00:${String(n % 60).padStart(2, '0')}.000Z`,
    cost: { amount: '0.02', currency: 'USDC' },
    metadata: {},
    signature: {
      alg: 'Ed25519',
      kid: 'trader/v1#key-1',
      publicKey: by.bytes.toString('base64url'),
      canonicalization: 'JCS-SORTED-UTF8-NOWS',
    },
    ...members,
  };
}

export function signedAar(by: Signer, unsigned: JsonMembers): JsonMembers {
  const sig = signText(by, jcs(unsigned));
  return { ...unsigned, signature: { ...(unsigned['signature'] as JsonMembers), sig } };
}

export function aarReceipt(by: Signer, n = 1, members: JsonMembers = {}): JsonMembers {
  return signedAar(by, unsignedAar(by, n, members));
}

/** An Agent Correction Record of an action, without its signature's bytes. */
export function acr(by: Signer, n = 1, members: JsonMembers = {}): JsonMembers {
  const publicKey = by.bytes.toString('base64url');
  return {
    correctionId: uuid(n),
    agent: { id: 'trader/v1', publicKey },
    principal: { id: 'acme', type: 'organization' },
    action: { type: 'db.write', target: 'yields' },
    reason: '',
    trigger: 'supersede',
    fix: { type: 'noop' },
    timestamp: `2026-09-10T00:00:0${n % 10}+00:00`,
    metadata: {},
    signature: { alg: 'Ed25519', kid: publicKey, publicKey, canonicalization: 'RFC8785' },
    ...members,
  };
}

/** Signed with an empty `sig` in its place. */
export function signedAcr(by: Signer, unsigned: JsonMembers): JsonMembers {
  const signature = { ...(unsigned['signature'] as JsonMembers), sig: '' };
  const sig = signText(by, jcs({ ...unsigned, signature }));
  return { ...unsigned, signature: { ...signature, sig } };
}

/** What a correction states of the record that it amends. */
export function digestOfRecord(record: JsonMembers): JsonMembers {
  return { alg: 'sha256', digest: Buffer.from(sha256Hex(jcs(record)), 'hex').toString('base64url') };
}
