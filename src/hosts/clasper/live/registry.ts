/** Adapters and the keys by which they sign. */

import type { SourceObject } from '../../../base/json/source-json.js';
import type { JsonObject } from '../../../base/json/value.js';
import { objectAt, textAt, valueAt } from '../../shared/values.js';
import { hostPrincipal } from '../desk.js';
import { readTelemetryKey, type TelemetryKey, tryReadJwk } from '../keys.js';
import { textsAt } from '../scope.js';
import { assertOf } from './adapters.js';
import type { Book, KnownAdapter } from './book.js';
import { appendEvidence, type Asked, readJson } from './office.js';
import { checkFields, invalidPayload, Refusal } from './refusal.js';

const RISKS = ['low', 'medium', 'high', 'critical'];

/** Answers `POST /adapters/register`. The same again is not recorded again. */
export async function registerAdapter(asked: Asked, body: SourceObject): Promise<object> {
  checkFields(body, {
    adapter_id: 'id',
    display_name: 'id',
    risk_class: 'text',
    capabilities: 'texts',
    version: 'id',
    enabled: 'boolean',
  });
  const { adapter, book } = asked;
  assertOf(body, adapter, false);
  const risk = textAt(body, 'risk_class') ?? '';
  if (!RISKS.includes(risk)) throw invalidPayload({ risk_class: `Expected ${RISKS.join(', ')}` });
  const version = textAt(body, 'version') ?? '';
  const capabilities = textsAt(body, 'capabilities');
  const before = book.adapter(adapter.tenant, adapter.adapterId, version);
  const isSame =
    before?.displayName === textAt(body, 'display_name') &&
    before?.riskClass === risk &&
    before?.enabled === valueAt(body, 'enabled') &&
    before?.capabilities.join('\n') === capabilities.join('\n');
  if (!isSame)
    await appendEvidence(asked, 'adapter_registered', adapter.host, {
      tenant_id: adapter.tenant,
      adapter_id: adapter.adapterId,
      adapter_version: version,
      display_name: textAt(body, 'display_name') ?? '',
      risk_class: risk,
      capabilities,
      enabled: valueAt(body, 'enabled') === true,
    });
  return toAnswer(book.adapter(adapter.tenant, adapter.adapterId, version)!);
}

/** Answers `POST /ops/api/adapters/telemetry-key`, and `…/revoke`: of an approver, who is known by the service's own tokens. */
export async function setTelemetryKey(
  asked: Pick<Asked, 'gate' | 'book'>,
  body: SourceObject,
  isRevoked: boolean,
): Promise<object> {
  checkFields(body, {
    tenant_id: 'id?',
    adapter_id: 'id',
    version: 'id?',
    ...(isRevoked ? {} : { key_alg: 'id', public_jwk: 'object', key_id: 'id?' }),
  });
  const adapter = findAdapter(asked.book, body);
  const { tenant, adapterId, version } = adapter;
  const named = { tenant_id: tenant, adapter_id: adapterId, adapter_version: version };
  if (isRevoked) {
    await appendEvidence(asked, 'telemetry_key_revoked', hostPrincipal(tenant), {
      ...named,
      ...(adapter.key?.keyId === undefined ? {} : { key_id: adapter.key.keyId }),
      revoked_at: asked.gate.ledger.now(),
    });
  } else {
    const [jwk, alg] = [objectAt(body, 'public_jwk'), textAt(body, 'key_alg') ?? ''];
    const key = jwk === undefined ? undefined : tryReadJwk(jwk);
    if (jwk === undefined || key?.alg !== (alg === 'ed25519' ? 'ed25519' : 'p256') || jwk.has('d'))
      throw invalidPayload({ public_jwk: 'Expected a public key of key_alg' });
    const keyId = textAt(body, 'key_id');
    await appendEvidence(asked, 'telemetry_key_set', hostPrincipal(tenant), {
      ...named,
      key_alg: alg,
      keyid: key.keyid,
      public_jwk: textsOf(jwk),
      ...(keyId === undefined ? {} : { key_id: keyId }),
    });
  }
  return { adapter: toAnswer(asked.book.adapter(tenant, adapterId, version)!) };
}

/** The adapter that is meant: of the stated tenant, else of the only one that has it. @throws Refusal 404 */
function findAdapter(book: Book, body: SourceObject): KnownAdapter {
  const [id, version] = [textAt(body, 'adapter_id') ?? '', textAt(body, 'version')];
  const tenant = textAt(body, 'tenant_id');
  const tenants = tenant === undefined ? book.tenantsOf(id) : [tenant];
  const found = tenants.length === 1 ? book.adapter(tenants[0]!, id, version) : undefined;
  if (found === undefined) throw new Refusal(404, 'Adapter not found');
  return found;
}

/** The key that an adapter's version signs with. */
export function telemetryKeyOf(
  book: Book,
  tenant: string,
  adapterId: string,
  version: string,
): TelemetryKey | undefined {
  const adapter = book.adapter(tenant, adapterId, version);
  const { key } = adapter ?? {};
  if (key === undefined || key.revokedAt !== undefined) return undefined;
  const entry = readJson({
    adapter_id: adapterId,
    adapter_version: version,
    alg: key.alg,
    public_jwk: key.jwk,
  });
  return readTelemetryKey(entry);
}

function toAnswer(adapter: KnownAdapter): object {
  const { key } = adapter;
  return {
    tenant_id: adapter.tenant,
    adapter_id: adapter.adapterId,
    display_name: adapter.displayName,
    risk_class: adapter.riskClass,
    capabilities: adapter.capabilities,
    version: adapter.version,
    enabled: adapter.enabled,
    created_at: adapter.createdAt,
    updated_at: adapter.updatedAt,
    telemetry_key_alg: key?.alg ?? null,
    telemetry_public_jwk: key?.jwk ?? null,
    telemetry_key_id: key?.keyId ?? null,
    telemetry_key_created_at: key?.createdAt ?? null,
    telemetry_key_revoked_at: key?.revokedAt ?? null,
  };
}

function textsOf(jwk: SourceObject): JsonObject {
  return Object.fromEntries(
    ['kty', 'crv', 'x', 'y'].flatMap((name) => {
      const text = textAt(jwk, name);
      return text === undefined ? [] : [[name, text]];
    }),
  );
}
