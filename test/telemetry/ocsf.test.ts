/** OCSF events, held to the published schema and to what they are to say. */

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { exportOcsf, verifyLedger, type ExportOptions, type LedgerInput } from '../../src/api/index.js';
import { OCSF_VERSION } from '../../src/out/export/telemetry/ocsf.js';
import { execution, unsigned } from '../docs/grant-kit.js';
import { keyOf, genesis, ledger, makeSigner, note } from '../docs/ledger-kit.js';
import { HOSTILE_STRINGS } from '../hostile-strings.js';
import { costly, costlyLedger, delegated, MemorySink, root } from '../table/kit.js';

interface Enrichment {
  readonly type: string;
  readonly value: string;
  readonly data: unknown;
}

interface OcsfEvent extends Record<string, unknown> {
  readonly activity_name: string;
  readonly severity_id: number;
  readonly status_id: number;
  readonly time: number;
  readonly status_detail: string;
  readonly metadata: { readonly uid?: string; readonly sequence?: number; readonly correlation_uid?: string };
  readonly api: { readonly operation: string };
  readonly enrichments: readonly Enrichment[];
}

async function ocsf(ledgerInput: LedgerInput, options: ExportOptions = {}): Promise<OcsfEvent[]> {
  const sink = new MemorySink();
  await exportOcsf(ledgerInput, sink, options);
  expect(sink.text.endsWith('\n')).toBe(true);
  return sink.text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as OcsfEvent);
}

const schema = new URL('../../../shared/specs/ocsf/', import.meta.url);
const isThere = existsSync(fileURLToPath(schema));

interface Attribute {
  readonly type?: string;
  readonly is_array?: boolean;
  readonly requirement?: string;
  readonly enum?: Readonly<Record<string, unknown>>;
}
interface Definition {
  readonly extends?: string;
  readonly attributes: Readonly<Record<string, Attribute>>;
  readonly constraints?: { readonly at_least_one?: readonly string[] };
}

function read(path: string): Definition {
  return JSON.parse(readFileSync(new URL(path, schema), 'utf8')) as Definition;
}

/** Everything that is wrong with an event by the schema, as far as its objects are there. */
class Schema {
  readonly #dictionary = read('dictionary.json').attributes;
  readonly #class: Record<string, Attribute> = {};

  constructor() {
    const parts = ['events/base_event', 'events/application/application', 'events/application/api_activity'];
    for (const part of [...parts, 'profiles/ai_operation']) {
      for (const [name, attribute] of Object.entries(read(`${part}.json`).attributes)) {
        const before = this.#class[name];
        this.#class[name] = { ...before, ...attribute, enum: { ...before?.enum, ...attribute.enum } };
      }
    }
    // Those of the base are its own: a class is numbered by its category, the sixth, and its place there.
    const { uid } = JSON.parse(readFileSync(new URL(`${parts[2]}.json`, schema), 'utf8')) as { uid: number };
    this.#class['category_uid'] = { requirement: 'required', type: 'integer_t', enum: { 6: {} } };
    this.#class['class_uid'] = { requirement: 'required', type: 'integer_t', enum: { [6000 + uid]: {} } };
  }

  problems(event: object): string[] {
    return this.#object(this.#class, event, '');
  }

  #object(attributes: Readonly<Record<string, Attribute>>, value: object, path: string): string[] {
    const known = Object.entries(attributes).filter(([name]) => name !== '$include');
    const missing = known
      .filter(([name, { requirement }]) => requirement === 'required' && !Object.hasOwn(value, name))
      .map(([name]) => `${path}/${name} is missing`);
    const names = new Set(known.map(([name]) => name));
    const wrong = Object.entries(value).flatMap(([name, each]) => {
      if (!names.has(name)) return [`${path}/${name} is not known`];
      const { enum: own, ...attribute } = { ...this.#dictionary[name], ...attributes[name] };
      const values = { ...(name.endsWith('_uid') ? {} : this.#dictionary[name]?.enum), ...own };
      const items: unknown[] =
        attribute.is_array === true ? (Array.isArray(each) ? each : [undefined]) : [each];
      return items.flatMap((item) => this.#value(attribute.type ?? '', values, item, `${path}/${name}`));
    });
    return [...missing, ...wrong];
  }

  #value(type: string, values: object, value: unknown, path: string): string[] {
    if (type === 'json_t') return [];
    if (['integer_t', 'long_t', 'timestamp_t'].includes(type)) {
      if (!Number.isSafeInteger(value)) return [`${path} is no integer`];
      const isKnown = Object.keys(values).length === 0 || Object.hasOwn(values, String(value));
      return isKnown ? [] : [`${path} is ${String(value)}`];
    }
    if (type === 'boolean_t') return typeof value === 'boolean' ? [] : [`${path} is no boolean`];
    if (type.endsWith('_t')) return typeof value === 'string' ? [] : [`${path} is no string`];
    if (typeof value !== 'object' || value === null) return [`${path} is no object`];
    const file = fileURLToPath(new URL(`objects/${type}.json`, schema));
    if (!existsSync(file)) return [];
    const { attributes, extends: base, constraints } = read(`objects/${type}.json`);
    const inherited = base === '_resource' ? read('objects/_resource.json').attributes : {};
    const some = constraints?.at_least_one ?? [];
    const none = some.length > 0 && !some.some((name) => Object.hasOwn(value, name));
    return [
      ...(none ? [`${path} has none of ${some.join(', ')}`] : []),
      ...this.#object({ ...inherited, ...attributes }, value, path),
    ];
  }
}

describe.skipIf(!isThere)('the schema of OCSF', () => {
  it('is the one that the events say', () => {
    const { version } = JSON.parse(readFileSync(new URL('version.json', schema), 'utf8')) as {
      version: string;
    };
    expect(OCSF_VERSION).toBe(version);
  });

  it('has nothing against any event', async () => {
    const all = new Schema();
    const signer = makeSigner();
    const signed = ledger(
      { event: genesis([keyOf(signer)]), signers: [signer] },
      { event: note('n'), signers: [signer] },
      { event: root, signers: [signer] },
      '{"event":{"event_type":"execution","occurred_at":"2026-01-02T00:00:00Z","principal_id":"org:x"}}',
    );
    const touching = execution(root, 1, {
      occurred_at: '2026-01-02T00:02:00Z',
      resources_touched: [{ kind: 'file', reference: '/tmp/x' }],
      model_id: 'm',
    });
    for (const each of [costlyLedger, signed, unsigned(...costly, touching)]) {
      const events = await ocsf(each);
      expect(events.length).toBeGreaterThan(4);
      for (const event of events) expect(all.problems(event)).toEqual([]);
    }
  });

  it('would have been heard', () => {
    const all = new Schema();
    expect(all.problems({ activity_id: 7, metadata: { version: 1 }, x: 1 })).toEqual(
      expect.arrayContaining([
        '/api is missing',
        '/activity_id is 7',
        '/metadata/version is no string',
        '/metadata/product is missing',
        '/x is not known',
      ]),
    );
  });
});

describe('exportOcsf', () => {
  const dataOf = (event: OcsfEvent | undefined, type: string): unknown =>
    event?.enrichments.find((each) => each.type === type)?.data;

  it('has an event for each record, with its outcome, and one of the verification', async () => {
    const events = await ocsf(costlyLedger);
    expect(
      events.map((event) => [event.activity_name, event.api.operation, event.status_id, event.severity_id]),
    ).toEqual([
      ['Create', 'genesis', 1, 1],
      ['Create', 'grant', 1, 1],
      ['Create', 'grant', 1, 1],
      ['Authorize', 'fs.read', 1, 1],
      ['Authorize', 'fs.read', 2, 2],
      ['Execute', 'fs.read', 1, 1],
      ['Execute', 'llm.complete', 1, 1],
      ['Execute', 'fs.read', 2, 2],
      ['Update', 'debit', 1, 1],
      ['Update', 'credit', 1, 1],
      ['Update', 'credit', 1, 4],
      ['Verify', 'verify', 2, 4],
    ]);
  });

  it('names the agent, its model, and the grants that it acts under', async () => {
    const events = await ocsf(costlyLedger);
    expect(events[6]).toMatchObject({
      time: Date.parse('2026-01-02T00:00:00.123Z'),
      ai_agent: { uid: 'agent:a1', ai_model: { name: 'claude-opus', ai_provider: 'anthropic' } },
      message_context: { prompt_tokens: 1200, completion_tokens: 80 },
    });
    const ids = [delegated, root].map(({ event_id: id }) => `sha-256:${id.b64}`);
    expect(dataOf(events[5], 'delegation')).toEqual({ grants: ids });
    expect(events[5]?.metadata.correlation_uid).toBe(ids[1]);
    expect(dataOf(events[6], 'meters')).toContainEqual({
      role: 'used',
      unit: 'usd',
      amount: '2.5',
      basis: 'estimated',
      estimated: true,
      counted: true,
    });
    expect(events[8]).not.toHaveProperty('ai_agent');
  });

  it('says what is wrong with a record, and what was not checked', async () => {
    const events = await ocsf(costlyLedger);
    expect(events[10]?.status_detail).toMatch(/^verdict violation: ADJUSTMENT_EXCEEDED, /);
    expect(dataOf(events[10], 'verification')).toMatchObject({
      verdict: 'violation',
      findings: [{ code: 'ADJUSTMENT_EXCEEDED', class: 'violation' }],
    });
    const report = await verifyLedger(costlyLedger);
    expect(dataOf(events.at(-1), 'verification')).toMatchObject({
      verdict: 'violation',
      root: report.ledger.root,
      is_selection: 'false',
      not_checked: report.not_checked.map(({ code }) => code).join(' '),
    });
  });

  it('leaves out what names no time, and counts it', async () => {
    const events = await ocsf(Buffer.concat([costlyLedger, Buffer.from('nonsense\n')]));
    expect(events).toHaveLength(12);
    expect(dataOf(events.at(-1), 'verification')).toMatchObject({ verdict: 'invalid', left_out: '1' });
  });

  it('lets outside text be text', async () => {
    const names = HOSTILE_STRINGS.map((text) => text.slice(0, 200).replace(/\p{Cs}/gu, '?')).filter(
      (text) => text !== '',
    );
    const sink = new MemorySink();
    const events = names.map((name) => execution(root, 0, { provider: name, model_id: name }));
    await exportOcsf(unsigned(root, ...events), sink);
    expect(sink.text).not.toMatch(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/u);
    const lines = sink.text.trimEnd().split('\n');
    const models = lines.map(
      (line) => (JSON.parse(line) as { ai_agent?: { ai_model?: { name: string } } }).ai_agent,
    );
    expect(models.flatMap((agent) => agent?.ai_model?.name ?? [])).toEqual(names);
  });
});
