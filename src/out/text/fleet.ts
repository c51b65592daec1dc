/** The report on a fleet for people. Everything that comes from ledgers is made printable. */

import { printable } from '../../base/bytes/printable.js';
import { formatQuantity } from '../../base/value/quantity.js';
import type {
  FleetAnchor,
  FleetCap,
  FleetLedger,
  FleetReport,
  FleetSlice,
  NotChecked,
} from '../../format/schema/generated/types.js';
import { type Guide, notCheckedLines, type Paint, plainPaint } from './guide.js';
import { VERDICT_STYLES } from './report.js';
import { count, row } from './words.js';

/** The most lines of each kind. */
const MAX_LINES = 20;
/** The most ledgers that are named beside what was not checked. */
const MAX_NAMES = 3;

/** The report as lines of text, each ending in `\n`. */
export function renderFleet(report: FleetReport, paint: Paint = plainPaint, guide: Guide = {}): string {
  const { verdict, counts, caps, slices, anchors, ledgers } = report;
  const { by_verdict: by } = counts;
  const bad = ledgers.filter((ledger) => ledger.verdict !== 'ok');
  const missing = slices.filter(({ state, child }) => state === 'open' && child === null);
  const broken = anchors.filter(({ relation }) => relation !== 'extends' && relation !== 'missing');
  const lines = [
    `${paint('bold', paint(VERDICT_STYLES[verdict], verdict))}  ${count(counts.ledgers, 'ledger')}, ${count(counts.records, 'record')}, ${count(counts.bytes, 'byte')}`,
    row(
      'verdicts',
      (['ok', 'violation', 'invalid', 'undecided'] as const)
        .filter((each) => by[each] > 0)
        .map((each) => `${by[each]} ${each}`)
        .join(', '),
    ),
    ...limit(bad.flatMap((ledger) => renderLedger(ledger, paint))),
    ...limit(caps.flatMap(renderCap)),
    ...limit(missing.map(renderMissing)),
    ...(anchors.length === 0
      ? []
      : [row('anchors', `${count(anchors.length, 'anchor')}, ${broken.length} not held`)]),
    ...limit(broken.map(renderAnchor)),
    ...notCheckedLines(
      report.not_checked.map((each) => withLedgers(each, ledgers)),
      paint,
      guide,
    ),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/** What was not checked, and of which ledgers, if not of all. */
function withLedgers(item: NotChecked, ledgers: readonly FleetLedger[]): NotChecked {
  const of = ledgers.filter(({ not_checked: codes }) => codes.includes(item.code));
  if (of.length === 0 || of.length === ledgers.length) return item;
  const names = of.slice(0, MAX_NAMES).map(({ path }) => printable(path));
  const more = of.length > MAX_NAMES ? ', …' : '';
  const where = `${of.length} of ${count(ledgers.length, 'ledger')}: ${names.join(', ')}${more}`;
  return { ...item, message: `${item.message} (${where})` };
}

function limit(lines: readonly string[]): string[] {
  const more = lines.length - MAX_LINES;
  return more <= 0 ? [...lines] : [...lines.slice(0, MAX_LINES), row('', `and ${more} more`)];
}

function renderLedger(
  { path, verdict, error, findings, findings_total: total }: FleetLedger,
  paint: Paint,
): string[] {
  const [worst] = findings;
  const why = error ?? worst;
  const said = why === undefined ? '' : `: ${why.code}: ${printable(why.message, 200)}`;
  const more = total > 1 ? ` (${count(total, 'finding')})` : '';
  return [row(paint(VERDICT_STYLES[verdict], verdict), `${printable(path)}${said}${more}`)];
}

function renderCap({
  path,
  grant_event_id: id,
  principal_id: principal,
  slices,
  meters,
}: FleetCap): string[] {
  const { settled, open, missing, released } = slices;
  const stands = [
    `${settled} settled`,
    `${open} open`,
    ...(missing === 0 ? [] : [`${missing} of these missing`]),
    ...(released === 0 ? [] : [`${released} released`]),
  ].join(', ');
  return [
    row('grant', `${printable(id)} of ${printable(principal)}, in ${printable(path)}: slices: ${stands}`),
    ...meters.map((meter) => {
      const text = (amount: typeof meter.cap): string => formatQuantity(amount);
      const gone =
        text(meter.missing) === '0' ? '' : `, ${text(meter.missing)} in missing ledgers counts as spent`;
      return row(
        'cap',
        `${text(meter.cap)} ${meter.unit}: used ${text(meter.used)}, reserved ${text(meter.reserved)}, left ${text(meter.left)}; in slices: set aside ${text(meter.set_aside)}, settled ${text(meter.settled)}, open ${text(meter.open)} with ${text(meter.open_used)} used so far${gone}`,
      );
    }),
  ];
}

function renderMissing({ event_id: id, path, meters }: FleetSlice): string {
  const amounts = meters.map(({ unit, amount }) => `${formatQuantity(amount)} ${unit}`).join(', ');
  return row('missing', `the ledger of ${printable(id)}, in ${printable(path)}: ${amounts}`);
}

function renderAnchor({ path, seq, child_path: child, tree_size: size, relation }: FleetAnchor): string {
  return row(
    'anchor',
    `${printable(child ?? '')} is ${relation}: ${printable(path)} has ${count(size, 'record')} of it at seq ${seq}`,
  );
}
