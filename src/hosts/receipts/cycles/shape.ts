/**
 * The shape of CyclesEvidence envelopes, `cycles-evidence/v0.1`, as its specification (v0.2.2) has it: every object closed but those that
 * it leaves open, every text and number bounded, and what request and response say held against each other.
 */

import { SourceNumber, SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import { printable } from '../../../base/bytes/printable.js';

export interface ShapeFault {
  /** RFC 6901, within the envelope. */
  readonly pointer: string;
  readonly expected: string;
  readonly actual: string;
}

type Shape = (value: SourceValue, pointer: string) => ShapeFault | undefined;

/** The first fault of an envelope; undefined where it has none. */
export function findShapeFault(envelope: SourceObject): ShapeFault | undefined {
  return ENVELOPE(envelope, '') ?? findPairFault(envelope);
}

/** What each kind of artifact has as its payload. */
export const ARTIFACT_TYPES = ['decide', 'reserve', 'commit', 'release', 'error'] as const;
export type ArtifactType = (typeof ARTIFACT_TYPES)[number];

const HOLDS_RESERVATION = [
  'POST /v1/reservations/{reservation_id}/commit',
  'POST /v1/reservations/{reservation_id}/release',
];

function fault(pointer: string, expected: string, value: SourceValue | undefined): ShapeFault {
  return { pointer, expected, actual: shown(value) };
}

function shown(value: SourceValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (typeof value === 'string') return `the text ${printable(value, 40)}`;
  if (typeof value === 'boolean') return String(value);
  if (value instanceof SourceNumber) return printable(value.text, 40);
  return value instanceof SourceObject ? 'an object' : 'an array';
}

function text(most = Infinity, least = 0): Shape {
  const expected = most === Infinity ? 'a text' : `a text of ${least} to ${most} characters`;
  return (value, pointer) => {
    if (typeof value !== 'string') return fault(pointer, expected, value);
    // By characters, as JSON Schema counts them.
    const length = value.length <= most && value.length >= 2 * least ? value.length : [...value].length;
    return length > most || length < least ? fault(pointer, expected, value) : undefined;
  };
}

function pattern(of: RegExp, expected: string): Shape {
  return (value, pointer) =>
    typeof value === 'string' && of.test(value) ? undefined : fault(pointer, expected, value);
}

function oneOf(...texts: readonly string[]): Shape {
  const expected = texts.length === 1 ? texts[0]! : `one of ${texts.join(', ')}`;
  return (value, pointer) =>
    typeof value === 'string' && texts.includes(value) ? undefined : fault(pointer, expected, value);
}

/** Bounds of an int64. */
const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n];

function whole(least = LEAST, most = MOST): Shape {
  const expected = `a whole number from ${least} to ${most}`;
  return (value, pointer) => {
    if (!(value instanceof SourceNumber) || !/^-?\d{1,20}(?:\.0{1,20})?$/.test(value.text))
      return fault(pointer, expected, value);
    const number = BigInt(value.text.replace(/\..*$/, ''));
    return number < least || number > most ? fault(pointer, expected, value) : undefined;
  };
}

const bool: Shape = (value, pointer) =>
  typeof value === 'boolean' ? undefined : fault(pointer, 'true or false', value);

function list(of: Shape, most = Infinity): Shape {
  return (value, pointer) => {
    if (!Array.isArray(value)) return fault(pointer, 'an array', value);
    const elements = value as readonly SourceValue[];
    if (elements.length > most) return { pointer, expected: `at most ${most}`, actual: `${elements.length}` };
    for (const [index, element] of elements.entries()) {
      const found = of(element, `${pointer}/${index}`);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

/** An object of these members and no other. */
function object(
  required: Readonly<Record<string, Shape>>,
  optional: Readonly<Record<string, Shape>> = {},
): Shape {
  const shapes = new Map([...Object.entries(required), ...Object.entries(optional)]);
  return (value, pointer) => {
    if (!(value instanceof SourceObject)) return fault(pointer, 'an object', value);
    for (const name of Object.keys(required))
      if (!value.has(name)) return fault(pointer, `the member ${name}`, undefined);
    for (const [name, member] of value.entries()) {
      const at = `${pointer}/${escapePointer(name)}`;
      const shape = shapes.get(name);
      if (shape === undefined) return { pointer: at, expected: 'no such member', actual: 'one' };
      const found = shape(member, at);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

function escapePointer(name: string): string {
  return printable(name, 80).replaceAll('~', '~0').replaceAll('/', '~1');
}

function record(of: Shape, most = Infinity): Shape {
  return (value, pointer) => {
    if (!(value instanceof SourceObject)) return fault(pointer, 'an object', value);
    const members = value.entries();
    if (members.length > most) return { pointer, expected: `at most ${most}`, actual: `${members.length}` };
    for (const [name, member] of members) {
      const found = of(member, `${pointer}/${escapePointer(name)}`);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

const open: Shape = (value, pointer) =>
  value instanceof SourceObject ? undefined : fault(pointer, 'an object', value);

const SUBJECTS = ['tenant', 'workspace', 'app', 'workflow', 'agent', 'toolset'];

const SUBJECT: Shape = (value, pointer) => {
  const dimensions = record(text(256), 16);
  const found = object({}, { ...Object.fromEntries(SUBJECTS.map((name) => [name, text(128)])), dimensions })(
    value,
    pointer,
  );
  if (found !== undefined) return found;
  return SUBJECTS.some((name) => (value as SourceObject).has(name))
    ? undefined
    : fault(pointer, `one of ${SUBJECTS.join(', ')}`, undefined);
};

const ACTION = object({ kind: text(64), name: text(256) }, { tags: list(text(64), 10) });
const UNIT = oneOf('USD_MICROCENTS', 'TOKENS', 'CREDITS', 'RISK_POINTS');
const AMOUNT = object({ unit: UNIT, amount: whole(0n) });
const SIGNED_AMOUNT = object({ unit: UNIT, amount: whole() });
const TRACE_ID = pattern(/^[0-9a-f]{32}$/, '32 lower-case hexadecimal digits');

const BALANCES = list(
  object(
    { scope: text(), scope_path: text(), remaining: SIGNED_AMOUNT },
    {
      reserved: AMOUNT,
      spent: AMOUNT,
      allocated: AMOUNT,
      debt: AMOUNT,
      overdraft_limit: AMOUNT,
      is_over_limit: bool,
    },
  ),
);

const CAPS = object(
  {},
  {
    max_tokens: whole(0n),
    max_steps_remaining: whole(0n),
    tool_allowlist: list(text(256)),
    tool_denylist: list(text(256)),
    cooldown_ms: whole(0n),
  },
);

const METRICS = object(
  {},
  {
    tokens_input: whole(0n),
    tokens_output: whole(0n),
    latency_ms: whole(0n),
    model_version: text(128),
    custom: open,
  },
);

const ASKED = { idempotency_key: text(256, 1), subject: SUBJECT, action: ACTION, estimate: AMOUNT };
const DECISION = oneOf('ALLOW', 'ALLOW_WITH_CAPS', 'DENY');
const SCOPES = list(text());
const DECIDED = { caps: CAPS, reason_code: text(128), retry_after_ms: whole(0n) };

const DECISION_REQUEST = object(ASKED, { metadata: open });
const DECISION_RESPONSE = withCaps(object({ decision: DECISION }, { ...DECIDED, affected_scopes: SCOPES }));

const RESERVE_REQUEST = object(ASKED, {
  ttl_ms: whole(1_000n, 86_400_000n),
  grace_period_ms: whole(0n, 60_000n),
  overage_policy: oneOf('REJECT', 'ALLOW_IF_AVAILABLE', 'ALLOW_WITH_OVERDRAFT'),
  dry_run: bool,
  metadata: open,
});
const RESERVE_RESPONSE = withCaps(
  object(
    { decision: DECISION, affected_scopes: SCOPES },
    {
      ...DECIDED,
      reservation_id: text(),
      reserved: AMOUNT,
      expires_at_ms: whole(0n),
      scope_path: text(),
      balances: BALANCES,
    },
  ),
);

const COMMIT_REQUEST = object(
  { idempotency_key: text(256, 1), actual: AMOUNT },
  { metrics: METRICS, metadata: open },
);
const COMMIT_RESPONSE = object(
  { status: oneOf('COMMITTED'), charged: AMOUNT },
  { released: AMOUNT, balances: BALANCES },
);
const RELEASE_REQUEST = object({ idempotency_key: text(256, 1) }, { reason: text(256) });
const RELEASE_RESPONSE = object({ status: oneOf('RELEASED'), released: AMOUNT }, { balances: BALANCES });

const ERROR_CODES = [
  ...['INVALID_REQUEST', 'UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND', 'BUDGET_EXCEEDED', 'BUDGET_FROZEN'],
  ...['BUDGET_CLOSED', 'RESERVATION_EXPIRED', 'RESERVATION_FINALIZED', 'IDEMPOTENCY_MISMATCH'],
  ...['UNIT_MISMATCH', 'OVERDRAFT_LIMIT_EXCEEDED', 'DEBT_OUTSTANDING', 'MAX_EXTENSIONS_EXCEEDED'],
  ...['LIMIT_EXCEEDED', 'TENANT_CLOSED', 'INTERNAL_ERROR'],
];
const ERROR_RESPONSE = object(
  { error: oneOf(...ERROR_CODES), message: text(), request_id: text() },
  { trace_id: TRACE_ID, details: open },
);

const ENDPOINTS: Readonly<Record<string, Shape>> = {
  'POST /v1/decide': DECISION_REQUEST,
  'POST /v1/reservations': RESERVE_REQUEST,
  [HOLDS_RESERVATION[0]!]: COMMIT_REQUEST,
  [HOLDS_RESERVATION[1]!]: RELEASE_REQUEST,
};

const PAYLOADS: Readonly<Record<ArtifactType, Shape>> = {
  decide: object({ request: DECISION_REQUEST, response: DECISION_RESPONSE }),
  reserve: both(object({ request: RESERVE_REQUEST, response: RESERVE_RESPONSE }), findReserveFault),
  commit: object({ reservation_id: text(), request: COMMIT_REQUEST, response: COMMIT_RESPONSE }),
  release: object({ reservation_id: text(), request: RELEASE_REQUEST, response: RELEASE_RESPONSE }),
  error: both(
    object(
      {
        endpoint: oneOf(...Object.keys(ENDPOINTS)),
        http_status: whole(400n, 599n),
        response: ERROR_RESPONSE,
      },
      { reservation_id: text(), request: open },
    ),
    findErrorFault,
  ),
};

const ENVELOPE = object(
  {
    schema_version: oneOf('cycles-evidence/v0.1'),
    artifact_type: oneOf(...ARTIFACT_TYPES),
    server_id: text(),
    signer_did: pattern(
      /^(?:[0-9a-f]{64}|did:cycles:[0-9a-f]{64}#.+)$/s,
      '64 lower-case hexadecimal digits, or did:cycles:HASH#KID',
    ),
    issued_at_ms: whole(0n),
    payload: open,
    evidence_id: pattern(/^[0-9a-f]{64}$/, '64 lower-case hexadecimal digits'),
    signature: pattern(/^[0-9a-f]{128}$/, '128 lower-case hexadecimal digits'),
  },
  { trace_id: TRACE_ID },
);

/** The payload is what the type of the artifact says, and nothing beside it. */
function findPairFault(envelope: SourceObject): ShapeFault | undefined {
  const type = envelope.get('artifact_type') as ArtifactType;
  return object({ [type]: PAYLOADS[type] })(envelope.get('payload')!, '/payload');
}

function both(shape: Shape, then: (value: SourceObject, pointer: string) => ShapeFault | undefined): Shape {
  return (value, pointer) => shape(value, pointer) ?? then(value as SourceObject, pointer);
}

/** Caps are there where the decision names them, and nowhere else. */
function withCaps(shape: Shape): Shape {
  return both(shape, (response, pointer) => {
    const wants = response.get('decision') === 'ALLOW_WITH_CAPS';
    if (wants === response.has('caps')) return undefined;
    return wants
      ? fault(pointer, 'the member caps', undefined)
      : { pointer: `${pointer}/caps`, expected: 'no caps without ALLOW_WITH_CAPS', actual: 'some' };
  });
}

/** What is only tried reserves nothing; what is not tried is never answered with a denial. */
function findReserveFault(payload: SourceObject, pointer: string): ShapeFault | undefined {
  const response = payload.get('response') as SourceObject;
  const isDry = (payload.get('request') as SourceObject).get('dry_run') === true;
  if (isDry) {
    const name = ['reservation_id', 'expires_at_ms'].find((each) => response.has(each));
    return name === undefined
      ? undefined
      : { pointer: `${pointer}/response/${name}`, expected: 'none in a dry run', actual: 'one' };
  }
  if (response.get('decision') === 'DENY')
    return { pointer: `${pointer}/response/decision`, expected: 'DENY in a dry run only', actual: 'DENY' };
  return response.has('reservation_id')
    ? undefined
    : fault(`${pointer}/response`, 'the member reservation_id', undefined);
}

/** What concerns a reservation names it, and nothing else does; a request is one of its endpoint. */
function findErrorFault(payload: SourceObject, pointer: string): ShapeFault | undefined {
  const endpoint = payload.get('endpoint') as string;
  const wants = HOLDS_RESERVATION.includes(endpoint);
  if (wants !== payload.has('reservation_id'))
    return wants
      ? fault(pointer, 'the member reservation_id', undefined)
      : { pointer: `${pointer}/reservation_id`, expected: `none of ${endpoint}`, actual: 'one' };
  const request = payload.get('request');
  return request === undefined ? undefined : ENDPOINTS[endpoint]!(request, `${pointer}/request`);
}
