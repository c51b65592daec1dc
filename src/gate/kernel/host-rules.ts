/** Which hosts may be fetched from, by name and by address. */

import { BlockList, isIP } from 'node:net';
import { printable } from '../../base/bytes/printable.js';

export interface HostRule {
  readonly protocol: 'https:' | 'http:';
  /** In lower case; of an IPv6 address without brackets. */
  readonly host: string;
  /** Whether it stands for all names below `host`, and not for it. */
  readonly isSuffix: boolean;
  readonly port: number;
}

export type Target = Pick<HostRule, 'protocol' | 'host' | 'port'>;

const MAX_RULES = 256;
const MAX_RULE = 300;
const DEFAULT_PORTS = { 'https:': 443, 'http:': 80 } as const;

/** @throws TypeError, RangeError for what is no list of hosts */
export function parseHostRules(rules: readonly string[]): HostRule[] {
  if (rules.length > MAX_RULES) throw new RangeError(`openKernelTools: hosts: expected at most ${MAX_RULES}`);
  return rules.map(parseRule);
}

function parseRule(text: string): HostRule {
  if (typeof text !== 'string') throw new TypeError('openKernelTools: hosts: expected texts');
  const [, scheme = 'https://', star, rest = ''] = /^(https?:\/\/)?(\*\.)?([^/?#@\\\s*]+)$/i.exec(text) ?? [];
  const url = rest === '' || text.length > MAX_RULE ? undefined : tryUrl(`${scheme}${rest}/`);
  const target = url && targetOf(url);
  if (target === undefined || (star !== undefined && isIP(target.host) !== 0))
    throw new RangeError(
      `openKernelTools: hosts: expected a host such as example.com, *.example.com or http://127.0.0.1:8080, found ${printable(text, 80)}`,
    );
  return { ...target, isSuffix: star !== undefined };
}

export function tryUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

/** Undefined for what is neither https nor http, or carries a name or password. */
export function targetOf({ protocol, hostname, port, username, password }: URL): Target | undefined {
  if ((protocol !== 'https:' && protocol !== 'http:') || username !== '' || password !== '') return undefined;
  const host = hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return { protocol, host, port: port === '' ? DEFAULT_PORTS[protocol] : Number(port) };
}

export function isListed(rules: readonly HostRule[], { protocol, host, port }: Target): boolean {
  return rules.some(
    (rule) =>
      rule.protocol === protocol &&
      rule.port === port &&
      (rule.isSuffix ? isIP(host) === 0 && host.endsWith(`.${rule.host}`) : host === rule.host),
  );
}

/**
 * Whether a connection to an address may be made for a listed name: it is one of the public Internet, or listed itself. So a name that
 * leads into this machine's or its networks' inside wins nothing.
 */
export function isReachable(rules: readonly HostRule[], target: Target, address: string): boolean {
  return isPublic(address) || isListed(rules, { ...target, host: address.toLowerCase() });
}

const SPECIAL = new BlockList();
// The special-purpose registries of IANA: RFC 6890 and what came since.
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  SPECIAL.addSubnet(network, prefix, 'ipv4');
// With these an address of IPv4 may hide in one of IPv6 (RFC 4380, RFC 3056), or nothing is public (RFC 3849, RFC 9637).
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  SPECIAL.addSubnet(network, prefix, 'ipv6');
/** All that is given to hosts of the Internet (RFC 4291 §2.4). */
const GLOBAL = new BlockList();
GLOBAL.addSubnet('2000::', 3, 'ipv6');

function isPublic(address: string): boolean {
  const version = isIP(address);
  if (version === 4) return !SPECIAL.check(address, 'ipv4');
  return (
    version === 6 &&
    !address.includes('%') &&
    GLOBAL.check(address, 'ipv6') &&
    !SPECIAL.check(address, 'ipv6')
  );
}
