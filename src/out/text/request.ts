/** One request for approval on one screen: who asks for what, what is left, what an approval would allow, and how to give it. */

import { printable } from '../../base/bytes/printable.js';
import { shortenDigestText } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import { formatQuantity } from '../../base/value/quantity.js';
import type { PendingApproval } from '../../log/policy/approve.js';
import type { RequestRule, RequestView } from '../../log/policy/explain-request.js';
import { renderBalances } from './accounts.js';
import { showContent } from './content.js';
import type { Paint } from './guide.js';
import { count, row, spanText } from './words.js';

/** Words of the calling program: how a request is answered, and how all of a long content is shown. */
export interface RequestGuide {
  readonly approve?: string | undefined;
  readonly reject?: string | undefined;
  readonly content?: string | undefined;
}

const STATUSES: Readonly<Record<RequestView['status'], string>> = {
  waiting: 'waits for approval',
  approved: 'approved, and not asked for again yet',
  rejected: 'rejected',
  ended: 'ended: its grant has expired or is withdrawn',
  closed: 'closed: the same call was allowed since, and the approvals that it named are used up',
  refused: 'denied for something that no approval lifts',
};

/** The most approvals that are shown. */
const MAX_SHOWN = 20;

/**
 * A request for people; text from the ledger and the content is made printable.
 * @param now - A timestamp of SPEC §2, for ages
 */
export function renderRequest(
  view: RequestView,
  paint: Paint,
  now: string,
  guide: RequestGuide = {},
): string {
  const { seq, eventId, status, principalId, occurredAt, toolName, reservation } = view;
  const { wouldAllow, rejected, decisionCode, answer, need } = view;
  // What is closed or refused waits for nothing.
  const isOpen = status === 'waiting' || status === 'rejected';
  const counting = view.approvals.filter(({ counts }) => counts);
  const unknown = isOpen ? unknownRuleText({ need, approvals: counting }) : undefined;
  const refused = status === 'refused' ? `, as ${printable(decisionCode)}` : '';
  const by = rejected === undefined ? '' : ` by ${printable(rejected.principalId)}: ${rejected.eventId}`;
  const lines = [
    paint('bold', `Request ${eventId}, seq ${seq}`),
    row('status', `${STATUSES[status]}${refused}${status === 'rejected' ? by : ''}`),
    row('asked by', `${printable(principalId)}, ${spanText(occurredAt, now)}, at ${occurredAt}`),
    row('tool', paint('bold', printable(toolName))),
    row('reserves', amountsText(reservation) || 'nothing: what it may use is bounded by the grant alone'),
    ...renderParameters(view, paint, guide),
    ...(view.rules.length === 0 && decisionCode === 'APPROVAL_REQUIRED'
      ? [row('rule', 'none of the grant: an adviser asked; whom it accepts is not recorded')]
      : view.rules.flatMap((rule) => renderRule(rule, view))),
    ...renderApprovals(view),
    ...(unknown === undefined ? [] : [row('', unknown)]),
    ...view.grants.flatMap((grant, depth) => [
      row(
        depth === 0 ? 'grant' : 'above it',
        `seq ${grant.seq} ${shortId(grant.eventId)} of ${printable(grant.principalId)}${grant.expiresAt === undefined ? '' : `, expires ${grant.expiresAt}`}${grant.withdrawn === undefined ? '' : `, out of force since seq ${grant.withdrawn.seq}`}`,
      ),
      ...renderBalances(grant.balances, paint),
    ]),
  ];
  if (isOpen) {
    const isHopeless = answer.decision === 'deny' && answer.decisionCode !== 'APPROVAL_REQUIRED';
    const why = `${answer.decisionCode}: ${printable(answer.reason ?? '', 400)}`;
    const most = amountsText(wouldAllow.limit);
    const many = (need?.count ?? 1) === 1 ? '' : `, when ${need?.count} have approved`;
    const until = wouldAllow.until === undefined ? '' : `, until ${wouldAllow.until} at the latest`;
    lines.push(
      row(
        'unanswered',
        `nothing runs: the request stays denied, ${view.expiresAt === undefined ? 'and does not expire' : `until its grant expires at ${view.expiresAt}`}`,
      ),
      row('approving', `allows this call once${many}${most === '' ? '' : `, at most ${most}`}${until}`),
      ...(isHopeless ? [paint('red', row('but now', `it would be denied all the same: ${why}`))] : []),
    );
    if (guide.approve !== undefined) lines.push(row('approve', guide.approve));
    if (guide.reject !== undefined) lines.push(row('reject', guide.reject));
  }
  return `${lines.join('\n')}\n`;
}

function renderParameters(
  { paramsDigest, content }: RequestView,
  paint: Paint,
  guide: RequestGuide,
): string[] {
  const named = row('parameters', printable(paramsDigest));
  const warn = (text: string): string[] => [named, paint('red', row('', text))];
  const file = content.file === undefined ? '' : ` ${printable(content.file)}`;
  switch (content.status) {
    case 'missing':
      return warn('not attached: ask for them, and compare their digest with this one');
    case 'mismatch':
      return warn(`not shown: what is attached does not have this digest:${file}`);
    case 'unreadable':
      return warn(`cannot be read: ${printable(content.error.message, 400)}`);
    case 'attached': {
      const { lines, isCut } = showContent(content.bytes);
      const size = count(content.bytes.length, 'byte');
      const what = lines.length === 0 ? 'no text' : 'only its beginning';
      const whole = guide.content === undefined ? '' : `; ${guide.content}`;
      return [
        named,
        row('', `${size}, attached and of this digest`),
        ...lines.map((line) => `    | ${line}`),
        ...(isCut ? [paint('red', row('', `NOT ALL IS SHOWN: ${what}, of ${size} in${file}${whole}`))] : []),
      ];
    }
  }
}

function renderRule(rule: RequestRule, { grants, approvals, status }: RequestView): string[] {
  const { tools, above, approvers, count: needed, maxAgeSeconds: age, approvalIds, grantId } = rule;
  const names = (all: readonly string[]): string => all.map((each) => printable(each, 80)).join(' or ');
  const beyond = above === undefined ? '' : ` above ${amountsText(above)}`;
  const old = age === undefined ? '' : `, each at most ${age} s old`;
  const by = new Set(
    approvals.filter(({ eventId }) => approvalIds.includes(eventId)).map(({ principalId }) => principalId),
  );
  const seq = grants.find(({ eventId }) => eventId === grantId)?.seq;
  const own = grantId === undefined ? 'as an adviser asked' : `by the grant ${shortId(grantId)}`;
  const source = seq === undefined ? own : `by the grant seq ${seq}`;
  return [
    row('rule', `${names(tools)}${beyond} needs ${needed} of ${names(approvers)}${old}; ${source}`),
    ...(status === 'closed'
      ? []
      : [row('', `${by.size} of ${needed} so far${by.size === 0 ? '' : `: ${names([...by])}`}`)]),
  ];
}

function renderApprovals({ approvals }: RequestView): string[] {
  const shown = approvals.slice(-MAX_SHOWN);
  return [
    ...shown.map(({ seq, principalId, limit, expiresAt, signers, counts }) => {
      const most = limit === undefined ? '' : `, at most ${amountsText(limit)}`;
      const until = expiresAt === undefined ? '' : `, until ${expiresAt}`;
      const key =
        signers.length === 0
          ? 'not signed'
          : `signed by ${signers.map((each) => printable(each)).join(', ')}`;
      return row(
        'approved',
        `by ${printable(principalId)}, seq ${seq}${most}${until}, ${key}${counts ? '' : ': DOES NOT COUNT'}`,
      );
    }),
    ...(approvals.length > shown.length ? [row('', `and ${approvals.length - shown.length} earlier`)] : []),
  ];
}

/** Such as `500 usd, 1 calls`. */
export function amountsText(amounts: MeterVector): string {
  return amounts
    .map(({ unit, amount }) => `${printable(formatQuantity(amount), 60)} ${printable(unit)}`)
    .join(', ');
}

/** Enough of an id to find it by. */
function shortId(id: string): string {
  return shortenDigestText(id, 12);
}

/** Who may approve, by patterns of principals; none where an adviser asked. */
export function approversText(approvers: readonly string[]): string {
  if (approvers.length === 0) return 'whom an adviser accepts';
  return approvers.map((each) => printable(each, 80)).join(' or ');
}

/**
 * What is known of a request that waits and was approved, where the rule of the adviser that asked is not recorded: only the adviser knows
 * whether that is enough. Undefined for any other.
 */
export function unknownRuleText({
  need,
  approvals,
}: Pick<PendingApproval, 'need'> & { readonly approvals: readonly unknown[] }): string | undefined {
  if (need === undefined || need.approvers.length > 0 || approvals.length === 0) return undefined;
  return 'whether that is enough only the adviser knows: ask for the call again';
}
