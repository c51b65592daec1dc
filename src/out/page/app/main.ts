/** The page: verifies what it holds, shows what came of it, and takes other files to verify. */

import { printable } from '../../../base/bytes/printable.js';
import type { BundleResult } from '../../../format/schema/generated/types.js';
import type { BundleInputs, BundleOverview, Inputs, Overview, RowQuery } from '../model/protocol.js';
import { type Agreement, compareReports } from './agreement.js';
import { readEmbedded } from './blocks.js';
import { Client, ClientError } from './client.js';
import { h, listOf, show, sizeText } from './dom.js';
import { muted } from './parts.js';
import { readGiven } from './files.js';
import {
  BUNDLE_SECTIONS,
  bundleFiguresView,
  bundleFindingsView,
  bundleNotCheckedView,
  bundleSentence,
  bundleSummaryView,
  contentsView,
  heldView,
} from './views/bundle.js';
import { eventsView } from './views/events.js';
import { exportedView } from './views/exported.js';
import { findingsView } from './views/findings.js';
import { grantsView } from './views/grants.js';
import { spentView } from './views/spent.js';
import { figuresView, notCheckedView, summaryView, verdictSentence } from './views/summary.js';
import { timelineView } from './views/timeline.js';
import { treeView } from './views/tree.js';
import { WhyDialog } from './views/why.js';

const SECTIONS = [
  ['#verdict-title', 'Verdict'],
  ['#not-checked', 'Not checked'],
  ['#findings', 'Findings'],
  ['#spent', 'Spent'],
  ['#grants', 'Grants'],
  ['#timeline', 'Timeline'],
  ['#tree', 'Who let whom act'],
  ['#events', 'Events'],
  ['#figures', 'Ledger'],
] as const;

/** The result of a verification, for programs that drive the page. */
interface Outcome {
  readonly verdict: string;
  readonly exit_status: number;
  readonly report?: unknown;
  readonly bundle?: BundleResult;
  readonly error?: string;
}

/** The input from programs that drive the page. */
interface Given {
  readonly ledger?: readonly File[];
  readonly predecessor?: File;
  readonly now?: string;
}

const held = readHeld();
const main = h('main', { id: 'main', tabindex: '-1' });
const live = h('p', { class: 'visually-hidden', 'aria-live': 'polite', role: 'status' });
const subject = h('span', { class: 'subject' });
const why = new WhyDialog();
const chooser = h('input', {
  type: 'file',
  multiple: true,
  id: 'files',
  class: 'visually-hidden',
  'aria-label': 'Files to verify: a ledger, a bundle, a trust policy, a checkpoint',
});
const back = h('button', { type: 'button', hidden: true }, 'Back to the exported ledger');
let client: Client | undefined;
const nav = h('nav', { 'aria-label': 'Sections', class: 'sections' });
let current: Inputs | BundleInputs | undefined;
let turn = 0;

chooser.addEventListener('change', () => {
  const files = [...(chooser.files ?? [])];
  chooser.value = '';
  if (files.length > 0) void take(files);
});
back.addEventListener('click', () => {
  if (held !== undefined) void verify(held.inputs);
});

show(
  document.getElementById('app') as HTMLElement,
  h('a', { href: '#main', class: 'skip' }, 'Skip to the verdict'),
  h(
    'header',
    { class: 'top' },
    h('div', { class: 'brand' }, h('strong', 'northroot'), ' audit page ', subject),
    h(
      'div',
      { class: 'top-actions' },
      back,
      h('button', { type: 'button', click: () => chooser.click() }, 'Verify other files…'),
      chooser,
    ),
  ),
  nav,
  live,
  main,
  h(
    'footer',
    muted(
      'Drop a ledger, a bundle, a trust policy or a checkpoint anywhere on this page, and it is verified too. Nothing leaves this browser: the page may not use the network.',
    ),
  ),
  why.element,
);
showSections(SECTIONS);
listenForDrops();
// For programs: says when it is done, and what came of it.
Object.assign(globalThis, { northroot: { verify: verifyGiven } });
if (held === undefined) fail('The page is damaged: what it holds cannot be read.');
else void verify(held.inputs);

function readHeld(): ReturnType<typeof readEmbedded> | undefined {
  try {
    return readEmbedded();
  } catch {
    return undefined;
  }
}

async function take(files: readonly File[]): Promise<void> {
  // The last input wins, whatever is still being read or verified.
  const own = (turn += 1);
  try {
    const { inputs, trust, witnessPolicy, checkpoints } = await readGiven(files);
    if (own !== turn) return;
    if (inputs !== undefined) {
      await verify(inputs);
      return;
    }
    // Policies and checkpoints apply to the ledger that is shown.
    if (current === undefined) throw new Error('there is no ledger here that this could be held against');
    await verify({
      ...current,
      trust: trust ?? current.trust,
      witnessPolicy: witnessPolicy ?? current.witnessPolicy,
      checkpoints: [...current.checkpoints, ...checkpoints],
    });
  } catch (error) {
    if (own !== turn) return;
    turn += 1;
    subject.textContent = printable(
      listOf(
        files.map(({ name }) => name),
        3,
      ),
      200,
    );
    fail(error instanceof Error ? error.message : String(error));
  }
}

async function verifyGiven({ ledger, predecessor, now }: Given): Promise<Outcome> {
  const { inputs } = ledger === undefined ? { inputs: held?.inputs } : await readGiven(ledger);
  if (inputs === undefined) return { verdict: 'undecided', exit_status: 2, error: 'there is no ledger' };
  if ('bundle' in inputs) return verify({ ...inputs, now });
  return verify({
    ...inputs,
    now: now ?? inputs.now,
    predecessor: predecessor ?? inputs.predecessor,
  });
}

async function verify(inputs: Inputs | BundleInputs): Promise<Outcome> {
  const own = (turn += 1);
  const idle = client?.isIdle === true ? client : undefined;
  if (idle === undefined) client?.stop();
  const before = current;
  current = inputs;
  back.hidden = inputs === held?.inputs || held === undefined;
  if (before !== undefined) why.leave();
  for (const name of ['verdict', 'exitStatus', 'agreement', 'scope']) delete main.dataset[name];
  document.title = 'verifying… · northroot audit page';
  const noun = 'bundle' in inputs ? 'bundle' : 'ledger';
  subject.textContent = 'bundle' in inputs ? printable(inputs.name) : inputs.paths.join(', ');
  document.documentElement.dataset['state'] = 'working';
  main.setAttribute('aria-busy', 'true');
  const bar = h('progress', { 'aria-label': 'Verified so far' });
  const words = muted(`Reading the ${noun}…`);
  show(
    main,
    h(
      'section',
      { class: 'hero working', 'aria-labelledby': 'working' },
      h('h1', { id: 'working' }, 'Verifying in this browser…'),
      bar,
      words,
      held !== undefined && inputs === held.inputs && exportedView(held.embedded.report),
    ),
  );
  live.textContent = `Verifying the ${noun} in this browser.`;
  try {
    const started = idle ?? (await Client.start());
    if (own !== turn) {
      started.stop();
      return { verdict: 'undecided', exit_status: 2, error: 'stopped' };
    }
    client = started;
    let told = 0;
    started.onProgress = ({ bytes, size }) => {
      bar.max = size;
      bar.value = bytes;
      words.textContent = `${sizeText(bytes)} of ${sizeText(size)}`;
      const quarter = Math.floor((4 * bytes) / Math.max(1, size));
      if (quarter > told && quarter < 4) live.textContent = `${quarter * 25} percent verified.`;
      told = Math.max(told, quarter);
    };
    if ('bundle' in inputs) {
      const overview = await started.call('verifyBundle', inputs);
      if (own !== turn) return { verdict: 'undecided', exit_status: 2, error: 'stopped' };
      displayBundle(overview, inputs, started);
      const { verdict, exit_status } = overview.result;
      return { verdict, exit_status, bundle: overview.result };
    }
    const overview = await started.call('verify', inputs);
    if (own !== turn) return { verdict: 'undecided', exit_status: 2, error: 'stopped' };
    const agreement: Agreement =
      held !== undefined && inputs === held.inputs
        ? compareReports(overview.report, held.embedded.report)
        : { kind: 'other' };
    display(overview, agreement, started);
    const { verdict, exit_status } = overview.report;
    return { verdict, exit_status, report: overview.report };
  } catch (error) {
    if (own !== turn) return { verdict: 'undecided', exit_status: 2, error: 'stopped' };
    // What was given with it is not given to what comes next.
    current = before ?? inputs;
    const { message, code, hint } =
      error instanceof ClientError ? error : { message: String(error), code: 'INTERNAL', hint: undefined };
    fail(`${message}${hint === undefined ? '' : ` (${hint})`}`);
    return { verdict: 'undecided', exit_status: 2, error: code };
  }
}

function showSections(sections: readonly (readonly [href: string, words: string])[]): void {
  show(
    nav,
    sections.map(([href, words]) => h('a', { href }, words)),
  );
}

function displayBundle(overview: BundleOverview, { name }: BundleInputs, asked: Client): void {
  const { verdict, exit_status: status, scope } = overview.result;
  main.dataset['verdict'] = verdict;
  main.dataset['exitStatus'] = String(status);
  main.dataset['scope'] = scope;
  delete main.dataset['agreement'];
  const isReadable = scope !== 'none';
  showSections(
    BUNDLE_SECTIONS.filter(([href]) => isReadable || href === '#verdict-title' || href === '#findings'),
  );
  show(
    main,
    bundleSummaryView(overview),
    isReadable && bundleNotCheckedView(overview),
    bundleFindingsView(overview),
    isReadable && [
      heldView(overview),
      contentsView(overview),
      eventsView(overview, asked, 'Records that are here').element,
      bundleFiguresView(overview),
    ],
  );
  done();
  document.title = `${verdict}: bundle ${printable(name)} · northroot audit page`;
  live.textContent = `Verified. ${bundleSentence(overview)}`;
  why.use(asked);
}

function display(overview: Overview, agreement: Agreement, asked: Client): void {
  const { verdict, exit_status: status } = overview.report;
  const events = eventsView(overview, asked);
  main.dataset['verdict'] = verdict;
  main.dataset['exitStatus'] = String(status);
  main.dataset['agreement'] = agreement.kind;
  delete main.dataset['scope'];
  showSections(SECTIONS);
  show(
    main,
    summaryView(overview, agreement),
    notCheckedView(overview),
    findingsView(overview),
    spentView(overview),
    grantsView(overview, asked),
    timelineView(overview),
    treeView(overview, asked),
    events.element,
    figuresView(overview),
  );
  for (const link of main.querySelectorAll('a[data-filter]'))
    link.addEventListener('click', () =>
      events.filter((link as HTMLElement).dataset['filter'] as RowQuery['verdict']),
    );
  done();
  document.title = `${verdict}: ${overview.report.ledger.paths.join(', ')} · northroot audit page`;
  live.textContent = `Verified. ${verdictSentence(overview)}${agreement.kind === 'differs' ? ' This is not what the exporter reported.' : ''}`;
  why.use(asked);
}

function fail(message: string): void {
  main.dataset['verdict'] = 'undecided';
  main.dataset['exitStatus'] = '2';
  delete main.dataset['agreement'];
  delete main.dataset['scope'];
  back.hidden = held === undefined;
  document.title = 'undecided: not verified · northroot audit page';
  live.textContent = '';
  why.leave();
  showSections([]);
  show(
    main,
    h(
      'section',
      { class: 'hero undecided', role: 'alert', 'aria-labelledby': 'failed' },
      h('h1', { id: 'failed' }, 'This could not be verified.'),
      h('p', printable(message, 2_000)),
    ),
  );
  done();
}

function done(): void {
  main.removeAttribute('aria-busy');
  document.documentElement.dataset['state'] = 'done';
}

function listenForDrops(): void {
  addEventListener('dragover', (event) => {
    event.preventDefault();
    document.documentElement.dataset['drop'] = '';
  });
  addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) delete document.documentElement.dataset['drop'];
  });
  addEventListener('drop', (event) => {
    event.preventDefault();
    delete document.documentElement.dataset['drop'];
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length > 0) void take(files);
  });
}
