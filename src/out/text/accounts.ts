/** Accounts as a table: cap, used, reserved and left of each grant and unit. */

import { printable } from '../../base/bytes/printable.js';
import { shortenDigestText } from '../../base/value/digest.js';
import { formatQuantity, isNegativeQuantity, type Quantity } from '../../base/value/quantity.js';
import type { GrantWithdrawn } from '../../format/schema/generated/types.js';
import { type Guide, moreOf, type Paint } from './guide.js';

/** One grant's accounts, as reports have them. */
export interface AccountRow {
  readonly event_id: string;
  readonly seq: number;
  readonly principal_id: string;
  readonly expires_at?: string | undefined;
  /** The grant that it was delegated from. */
  readonly parent_event_id?: string | undefined;
  readonly withdrawn?: GrantWithdrawn | undefined;
  /** Keyids of entitled signers; left out if not requested. */
  readonly signers?: readonly string[];
  readonly executions: number;
  readonly meters: readonly {
    readonly unit: string;
    readonly cap: Quantity;
    readonly used: Quantity;
    readonly estimated?: Quantity | undefined;
    readonly reserved: Quantity;
    readonly left: Quantity;
  }[];
  /** The most that one action may reserve and one execution may use. */
  readonly action_caps?: readonly { readonly unit: string; readonly amount: Quantity }[] | undefined;
}

const HEADS = ['unit', 'cap', 'used', 'reserved', 'left'] as const;
/** Shown where a unit of the grant has any. */
const ESTIMATED = 'of it estimated';
const MAX_AMOUNT_LENGTH = 48;
const MAX_NAME_LENGTH = 80;

/** What a known key is called, by its keyid. */
type NameOfKey = (keyid: string) => string | undefined;

/**
 * The lines of the table; `limit` grants at most, with a line that says how many are left out.
 *
 * @param grants - In ledger order, so that each comes after the one that it was delegated from.
 */
export function renderAccounts(
  grants: Iterable<AccountRow> & { readonly length?: number },
  paint: Paint,
  limit = Infinity,
  nameOf: NameOfKey = () => undefined,
  guide: Guide = {},
): string[] {
  const seqs = new Map<string, number>();
  const lines: string[] = [];
  let leftOut = 0;
  for (const grant of grants) {
    if (seqs.size >= limit) {
      leftOut = grants.length === undefined ? leftOut + 1 : grants.length - limit;
      if (grants.length !== undefined) break;
      continue;
    }
    seqs.set(grant.event_id, grant.seq);
    const expires = grant.expires_at === undefined ? '' : `, expires ${printable(grant.expires_at)}`;
    const runs = `${grant.executions} execution${grant.executions === 1 ? '' : 's'}`;
    const parent = grant.parent_event_id;
    const from = parent === undefined ? '' : `, delegated from ${parentText(parent, seqs.get(parent))}`;
    const title = `  seq ${grant.seq}  ${printable(grant.principal_id)}  ${shortId(grant.event_id)}  ${runs}${expires}${from}${withdrawnText(grant)}`;
    const { signers } = grant;
    const by = signers === undefined ? [] : [`    signed by ${renderSigners(signers, nameOf)}`];
    lines.push(title, ...by, ...renderBalances(grant.meters, paint), ...renderActionCaps(grant));
  }
  if (leftOut > 0) lines.push(`  … and ${leftOut} more grants${moreOf(guide.more?.grants, ' (', ')')}`);
  return lines;
}

/** A grant that is listed has a number there; another is named by its id. */
function parentText(id: string, seq: number | undefined): string {
  return seq === undefined ? shortId(id) : `seq ${seq}`;
}

function withdrawnText({ withdrawn }: AccountRow): string {
  if (withdrawn === undefined) return '';
  const { effect, seq } = withdrawn;
  return `, ${effect === 'revoke' ? 'revoked' : 'suspended'}: out of force since seq ${seq}`;
}

function renderActionCaps({ action_caps: caps = [] }: AccountRow): string[] {
  if (caps.length === 0) return [];
  const list = caps.map(({ unit, amount }) => `${amountText(amount)} ${printable(unit)}`);
  return [`    one action at most ${list.join(', ')}`];
}

export function renderSigners(keyids: readonly string[], nameOf: NameOfKey): string {
  return keyids.map((keyid) => keyText(keyid, nameOf(keyid))).join(', ') || 'no known and entitled key';
}

export function keyText(keyid: string, name: string | undefined): string {
  return name === undefined ? keyid : `${keyid} (${printable(name, MAX_NAME_LENGTH)})`;
}

/** The rows of one grant under a heading. */
export function renderBalances(balances: AccountRow['meters'], paint: Paint): string[] {
  const isGuessed = balances.some(({ estimated }) => estimated !== undefined);
  const heads = isGuessed ? [...HEADS, ESTIMATED] : HEADS;
  const rows = balances.map(({ unit, cap, used, estimated, reserved, left }) => [
    printable(unit),
    ...([cap, used, reserved, left] as const).map(amountText),
    ...(isGuessed ? [estimated === undefined ? '' : amountText(estimated)] : []),
  ]);
  const widths = heads.map((head, column) =>
    Math.max(head.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `    ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ')}`;
  return [
    paint('dim', line(heads)),
    ...rows.map((row, index) => {
      const isOver = isNegativeQuantity((balances[index] as AccountRow['meters'][number]).left);
      return isOver ? paint('red', line(row)) : line(row);
    }),
  ];
}

/** An id short enough for a table, and long enough to be given to other commands. */
export function shortId(eventId: string): string {
  return shortenDigestText(eventId, 12);
}

function amountText(amount: Quantity): string {
  const text = formatQuantity(amount);
  return text.length > MAX_AMOUNT_LENGTH ? `${text.slice(0, MAX_AMOUNT_LENGTH - 1)}…` : text;
}
