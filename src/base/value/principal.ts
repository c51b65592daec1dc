/**
 * Principals, SPEC §2 and §7: who acts (`human:…`, `service:…`, `agent:…`, `org:…`), and the patterns of principals that a key may
 * sign for: a PrincipalID, a prefix of one and a final `*`, or `*`. The `*` matches one or more characters: `agent:ci*` matches
 * `agent:ci-1`, not `agent:ci`.
 */

const PRINCIPAL_ID = /^(?:human|service|agent|org):[A-Za-z0-9][A-Za-z0-9._:@/+~-]{0,254}$/;
/** The part before a final `*`: a prefix of a kind, or a kind, `:` and a prefix of a name. */
const PRINCIPAL_PREFIX =
  /^(?:h(?:u(?:m(?:an?)?)?)?|s(?:e(?:r(?:v(?:i(?:ce?)?)?)?)?)?|a(?:g(?:e(?:nt?)?)?)?|o(?:rg?)?|(?:human|service|agent|org):(?:[A-Za-z0-9][A-Za-z0-9._:@/+~-]{0,254})?)$/;

export function isPrincipalId(text: string): boolean {
  return PRINCIPAL_ID.test(text);
}

export function isPrincipalPattern(text: string): boolean {
  if (!text.endsWith('*')) return PRINCIPAL_ID.test(text);
  return text === '*' || PRINCIPAL_PREFIX.test(text.slice(0, -1));
}

/** Whether a principal pattern matches a PrincipalID. Both MUST be well-formed. */
export function matchesPrincipalPattern(pattern: string, principal: string): boolean {
  if (!pattern.endsWith('*')) return pattern === principal;
  return principal.length >= pattern.length && principal.startsWith(pattern.slice(0, -1));
}
