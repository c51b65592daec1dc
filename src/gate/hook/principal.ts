/** Who acts: the session's principal, or a subagent's own. */

import { encodeHex } from '../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { isPrincipalId } from '../../base/value/principal.js';
import type { HookOptions } from './options.js';
import { invalidInput } from './profile.js';

/**
 * The principal of a call. Without `subagents` all of a session's calls are its principal's. With it, a subagent acts as that prefix and its
 * kind, under a grant of its own or not at all: were it to fall back on the session's, an agent could name a subagent as it likes to get at
 * the larger grant. Characters that a PrincipalID cannot have become `~` and two hex digits per UTF-8 byte.
 * @throws NorthrootError `HOOK_INPUT_INVALID` if that is no PrincipalID
 */
export function principalFor(
  agentType: string | undefined,
  { principal, subagents }: Pick<HookOptions, 'principal' | 'subagents'>,
): string {
  if (subagents === undefined || agentType === undefined) return principal;
  const name = agentType.replace(/[^A-Za-z0-9._:@/+-]/gu, (character) =>
    encodeHex(encodeUtf8(character)).toUpperCase().replace(/../g, '~$&'),
  );
  if (isPrincipalId(`${subagents}${name}`)) return `${subagents}${name}`;
  throw invalidInput('agent_type: expected a kind that a PrincipalID can be made of');
}
