/** The checks of a verification in groups, for formats that report checks rather than findings. */

import { CODE_PAGES, isFindingCode } from '../../format/finding/catalog.js';

export interface CheckGroup {
  readonly id: string;
  /** What holds where nothing is found. */
  readonly title: string;
  /** Without it, none of the group was checked: a code of `not_checked`. */
  readonly unchecked?: string;
}

const GROUPS = {
  lines: { id: 'lines', title: 'every line is canonical JSON' },
  values: { id: 'values', title: 'every record has the form and the values of its type' },
  identity: { id: 'identity', title: 'every event has the id of its content, and is of this ledger' },
  chain: { id: 'chain', title: 'the records are in order and chained', unchecked: 'CHAIN' },
  signatures: {
    id: 'signatures',
    title: 'the signatures are valid, by keys that may sign',
    unchecked: 'SIGNATURES',
  },
  checkpoints: {
    id: 'checkpoints',
    title: 'checkpoints, witnesses and the tree agree with the records',
    unchecked: 'CHECKPOINTS',
  },
  links: { id: 'links', title: 'what events name is there, and is what it must be' },
  bounds: { id: 'bounds', title: 'what was done was authorized, and within its bounds' },
} as const satisfies Readonly<Record<string, CheckGroup>>;

/** All groups, in the order in which a record is checked. */
export const CHECK_GROUPS: readonly CheckGroup[] = Object.values(GROUPS);

/** A link to what would have allowed an act: without it the act was not authorized. */
const TO_AUTHORIZATION: ReadonlySet<string> = new Set([
  'AUTH_AFTER_EXECUTION',
  'AUTH_NOT_AN_AUTHORIZATION',
  'AUTH_NOT_FOUND',
  'GRANT_NOT_A_GRANT',
  'GRANT_NOT_FOUND',
]);

/** By the section that makes a code a finding; the first that fits. */
const BY_SECTION: readonly (readonly [section: RegExp, group: CheckGroup])[] = [
  [/§8 linkage|§8 rule (?:11|13)\b/, GROUPS.links],
  [/§8|§3\.1/, GROUPS.bounds],
  [/§6/, GROUPS.checkpoints],
  [/§5|^§7/, GROUPS.signatures],
  [/§2|§4, §7/, GROUPS.values],
  [/§3\.3|§4/, GROUPS.chain],
  [/§3/, GROUPS.identity],
  [/§1/, GROUPS.lines],
];

/** The group of a finding's code. */
export function groupOf(code: string): CheckGroup {
  if (!isFindingCode(code) || code.startsWith('LINE_')) return GROUPS.lines;
  const { section, class: of } = CODE_PAGES[code];
  if (of === 'violation' || TO_AUTHORIZATION.has(code)) return GROUPS.bounds;
  return BY_SECTION.find(([pattern]) => pattern.test(section))?.[1] ?? GROUPS.values;
}
