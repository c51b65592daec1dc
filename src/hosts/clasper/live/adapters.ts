/** Who asks: an adapter, by its token. */

import type { SourceObject } from '../../../base/json/source-json.js';
import type { HttpRequest } from '../../../base/platform/serve-http.js';
import { listAt, textAt, valueAt } from '../../shared/values.js';
import { adapterPrincipal, hostPrincipal } from '../desk.js';
import { textsAt } from '../scope.js';
import { type JwtExpectation, verifyJwt } from './jwt.js';
import { Refusal } from './refusal.js';

export interface Adapter {
  readonly adapterId: string;
  readonly tenant: string;
  readonly workspace: string;
  readonly capabilities: readonly string[];
  /** As whom its executions are recorded. */
  readonly principal: string;
  /** As whom its tenant's grants are held. */
  readonly host: string;
}

/** @throws Refusal 401 without a token, 403 for one that is not valid */
export function readAdapter(request: HttpRequest, secret: string, expected: JwtExpectation): Adapter {
  const token = request.headers['x-adapter-token'];
  if (token === undefined || token === '') throw new Refusal(401, 'Missing adapter token', 'missing_token');
  const claims = verifyJwt(token, secret, expected);
  if (claims === undefined) throw new Refusal(403, 'Invalid adapter token', 'invalid_token');
  if (textAt(claims, 'type') !== 'adapter')
    throw new Refusal(403, 'Invalid adapter token type', 'invalid_token');
  const [adapterId, tenant, workspace] = [
    textAt(claims, 'adapter_id'),
    textAt(claims, 'tenant_id'),
    textAt(claims, 'workspace_id'),
  ];
  if (
    !isId(adapterId) ||
    !isId(tenant) ||
    !isId(workspace) ||
    listAt(claims, 'allowed_capabilities') === undefined
  )
    throw new Refusal(403, 'Missing required adapter claims', 'missing_claim');
  return {
    adapterId,
    tenant,
    workspace,
    capabilities: textsAt(claims, 'allowed_capabilities'),
    principal: adapterPrincipal(tenant, adapterId),
    host: hostPrincipal(tenant),
  };
}

/** Whether an object that names an adapter, a tenant or a workspace names this adapter's. */
export function isOf(
  object: SourceObject,
  { adapterId, tenant, workspace }: Adapter,
  needsAll = true,
): boolean {
  const same = (name: string, own: string): boolean => {
    const stated = valueAt(object, name);
    return stated === own || (!needsAll && stated === undefined);
  };
  return same('adapter_id', adapterId) && same('tenant_id', tenant) && same('workspace_id', workspace);
}

/** @throws Refusal 403 */
export function assertOf(object: SourceObject, adapter: Adapter, needsAll = true): void {
  if (!isOf(object, adapter, needsAll)) throw new Refusal(403, 'Adapter scope mismatch');
}

function isId(text: string | undefined): text is string {
  return text !== undefined && text !== '' && text.length <= 256 && !/\p{Surrogate}/u.test(text);
}
