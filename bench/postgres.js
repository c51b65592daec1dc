/**
 * A ledger in PostgreSQL beside one in a file, both on disk before they answer, as ratios. Starts a server of its own, and ends it.
 *
 *     node bench/postgres.js [--seconds 5 --records 3000 --rounds 3 --folder /tmp]
 *     node bench/postgres.js --open 1000000     only opens a ledger of so many records, and one of a tenth, over their indexes
 */

import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import {
  createSigner,
  draftGrant,
  formatPrivateKey,
  generatePrivateKey,
  Ledger,
  LiveLedger,
  meters,
  parsePrivateKey,
  sha256Digest,
  verifyLedger,
} from '../dist/api/index.js';
import { Notices, PostgresStore } from '../dist/api/internals.js';
import { measureInTurns, median } from './rounds.js';

const WRITER = fileURLToPath(new URL('writer-process.js', import.meta.url));
const WRITERS = 4;
const LEDGERS = 8;
const IN_FLIGHT = 64;
/** One by one, in each of the ledgers. */
const EACH = 60;
/** Turns of the two, whose order changes: a sync takes as long as the disk likes. */
const NOTIFIED_ROUNDS = 15;
/** Records that another writer adds before a ledger is opened. */
const NEW = 1_000;
const DIGEST = sha256Digest(Buffer.from('the benchmark'));
const ORIGIN = { origin: 'example.com/bench' };

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    records: { type: 'string', default: '3000' },
    rounds: { type: 'string', default: '3' },
    folder: { type: 'string', default: tmpdir() },
    open: { type: 'string' },
  },
});
const [seconds, records, rounds] = [values.seconds, values.records, values.rounds].map(Number);
const folder = mkdtempSync(join(values.folder, 'northroot-postgres-'));
// Where positions of ledgers in databases are kept.
process.env['XDG_STATE_HOME'] = folder;
const pem = formatPrivateKey(generatePrivateKey(), 'pem');
const signer = createSigner(parsePrivateKey(pem));
let made = 0;

const server = await startServer();
const pathOf = () => join(folder, `ledger-${(made += 1)}.jsonl`);
const urlOf = () => `${server.url}#ledger-${(made += 1)}`;
try {
  await (values.open === undefined ? compareAll() : measureOpening(Number(values.open)));
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function compareAll() {
  const [, appends] = await measureInTurns(
    [pathOf, urlOf].map((place) => ({ name: place.name, records, run: () => appendStream(place()) })),
    rounds,
  );
  print('streamed append ÷ file', appends.ratio);
  const [, decisions] = await measureInTurns(
    [pathOf, urlOf].map((place) => ({ name: place.name, records, run: () => decide(place()) })),
    rounds,
  );
  print(`decisions with ${IN_FLIGHT} in flight ÷ file`, decisions.ratio);
  const { counts, waits } = await writeTogether(urlOf());
  print(`${WRITERS} writing processes, least ÷ most`, Math.min(...counts) / Math.max(...counts));
  const longest = Math.max(...waits);
  print('their longest wait ÷ median', longest / median(waits), `${longest.toFixed(0)} ms`);
  const { ratio, least, most } = await compareNotified();
  print(
    `${LEDGERS} ledgers, with notifications ÷ without`,
    ratio,
    `half of the turns from ${least.toFixed(2)} to ${most.toFixed(2)}`,
  );
}

/**
 * Each turn gives a ratio of the two, one right after the other: the median of those, and their quartiles. With stores alone: what signing
 * and the index cost is not to hide what is told.
 */
async function compareNotified() {
  const tell = Notices.prototype.tell;
  const ledgers = [];
  for (let n = 0; n < LEDGERS; n += 1) {
    const store = await PostgresStore.open(urlOf(), { create: true });
    ledgers.push({ store, ledger: await Ledger.open(store, { create: ORIGIN }) });
  }
  const timed = async (told) => {
    Notices.prototype.tell = told;
    const start = performance.now();
    await Promise.all(
      ledgers.map(async ({ ledger }) => {
        for (let n = 0; n < EACH; n += 1) await ledger.append({ event: event(n) });
      }),
    );
    return performance.now() - start;
  };
  const silent = () => undefined;
  const ratios = [];
  try {
    for (let turn = 0; turn <= NOTIFIED_ROUNDS; turn += 1) {
      const order = turn % 2 === 0 ? [silent, tell] : [tell, silent];
      const times = new Map();
      for (const told of order) times.set(told, await timed(told));
      // The first turn warms up.
      if (turn > 0) ratios.push(times.get(silent) / times.get(tell));
    }
  } finally {
    Notices.prototype.tell = tell;
    for (const { ledger, store } of ledgers) {
      await ledger.close();
      await store.close();
    }
  }
  ratios.sort((one, other) => one - other);
  const quarter = Math.floor(ratios.length / 4);
  return { ratio: median(ratios), least: ratios[quarter], most: ratios[ratios.length - 1 - quarter] };
}

/** What opening costs over an index that has all but what is new: the processor time of this process, and the time. */
async function measureOpening(most) {
  const ledgers = [];
  for (const size of [Math.ceil(most / 10), most]) {
    const ledger = { size, url: urlOf(), index: join(folder, `index-${size}`) };
    const start = performance.now();
    await extend(ledger.url, size, ledger.index);
    console.log(`${size} records made in ${((performance.now() - start) / 1_000).toFixed(0)} s`);
    ledgers.push(ledger);
  }
  for (const added of [0, NEW]) {
    const costs = new Map(ledgers.map(({ size }) => [size, []]));
    for (let round = 0; round <= rounds; round += 1) {
      for (const { size, url, index } of ledgers) {
        if (added > 0) await extend(url, added, false);
        const cost = await costOfOpening(url, index);
        if (round > 0) costs.get(size).push(cost);
      }
    }
    const [small, large] = [...costs].map(([size, all]) => {
      const cpu = median(all.map(({ cpuMs }) => cpuMs));
      const time = median(all.map(({ ms }) => ms));
      console.log(
        `opening over ${size} records, ${added} of them new: ${cpu.toFixed(0)} ms CPU, ${time.toFixed(0)} ms`,
      );
      return cpu;
    });
    print(`ten times the records, ${added} of them new, in CPU ÷`, large / small);
  }
}

async function costOfOpening(url, index) {
  const [start, before] = [performance.now(), process.cpuUsage()];
  const ledger = await Ledger.open(url, { index });
  const [ms, { user, system }] = [performance.now() - start, process.cpuUsage(before)];
  await ledger.close();
  return { ms, cpuMs: (user + system) / 1_000 };
}

async function extend(url, count, index) {
  const ledger = await Ledger.open(url, { create: ORIGIN, index });
  for (let done = 0; done < count; done += 10_000) {
    const some = Math.min(10_000, count - done);
    await Promise.all(Array.from({ length: some }, (_, n) => ledger.append({ event: event(done + n) })));
  }
  await ledger.close();
}

function print(what, ratio, more) {
  console.log(`${what.padEnd(44)} ${ratio.toFixed(2)}${more === undefined ? '' : ` (${more})`}`);
}

function event(n) {
  return { event_type: 'x.bench', principal_id: 'agent:bench', n };
}

async function appendStream(place) {
  const ledger = await Ledger.open(place, { signer, create: ORIGIN });
  await Promise.all(Array.from({ length: records }, (_, n) => ledger.append({ event: event(n) })));
  await ledger.close();
}

async function decide(place) {
  const ledger = await LiveLedger.open(place, { signer, create: ORIGIN });
  const caps = { calls: 10n ** 9n };
  await ledger.append({
    event: draftGrant({ principalId: 'agent:bench', allowedTools: ['fs.*'], meterCaps: caps }),
  });
  let asked = 0;
  const ask = async () => {
    while (asked < records) {
      asked += 1;
      const { decision } = await ledger.authorize({
        principalId: 'agent:bench',
        toolName: 'fs.read',
        paramsDigest: sha256Digest(Buffer.from(`${asked}`)),
        intentDigest: DIGEST,
        meters: meters({ calls: 1 }),
      });
      if (decision !== 'allow') throw new Error('expected an allow');
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, ask));
  await ledger.close();
}

async function writeTogether(url) {
  await (await Ledger.open(url, { signer, create: ORIGIN })).close();
  const from = Date.now() + 3_000;
  const task = { role: 'append', path: url, key: pem, from, until: from + seconds * 1000 };
  const ends = await Promise.all(
    Array.from({ length: WRITERS }, (_, n) =>
      run(process.execPath, [WRITER, JSON.stringify({ ...task, tag: n })]),
    ),
  );
  const told = ends.map((text) => JSON.parse(text));
  const { verdict } = await verifyLedger(url);
  const store = await PostgresStore.open(url);
  const held = [];
  for await (const { kind, lines } of store.read())
    if (kind === 'lines') for (const { bytes } of lines) held.push(Buffer.from(bytes).toString());
  await store.close();
  const lost = told
    .flatMap(({ acknowledged }) => acknowledged)
    .filter(({ seq, eventId }) => !held[seq]?.includes(eventId.replace('sha-256:', '')));
  if (verdict !== 'ok' || lost.length > 0)
    throw new Error(
      `the ledger is ${verdict}, and ${lost.length} acknowledged records are not in their place`,
    );
  return { counts: told.map(({ count }) => count), waits: told.flatMap(({ waits }) => waits) };
}

function run(program, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => (text += chunk));
    child.once('close', (status) => (status === 0 ? resolve(text) : reject(new Error(`status ${status}`))));
  });
}

/** PostgreSQL as it is installed: it writes to the disk before it answers. */
async function startServer() {
  const programs = findPrograms();
  const data = mkdtempSync(join(values.folder, 'northroot-server-'));
  const user = userOfServer();
  if (user.uid !== undefined) chownSync(data, user.uid, user.gid);
  const options = { ...user, cwd: data, stdio: 'pipe' };
  const port = await freePort();
  execFileSync(
    join(programs, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '--locale=C'],
    options,
  );
  const settings = `port = ${port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n`;
  appendFileSync(join(data, 'postgresql.conf'), settings);
  const child = spawn(join(programs, 'postgres'), ['-D', data], { ...options, stdio: 'ignore' });
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const stop = async () => {
    const isGone = new Promise((resolve) => child.once('close', resolve));
    if (child.exitCode === null && child.kill('SIGQUIT')) await isGone;
    rmSync(data, { recursive: true, force: true });
  };
  for (let tries = 0; ; tries += 1) {
    try {
      await (await PostgresStore.open(`${url}#start`, { create: true })).close();
      return { url, stop };
    } catch (error) {
      if (tries < 5) continue;
      await stop();
      throw error;
    }
  }
}

function findPrograms() {
  const debian = '/usr/lib/postgresql';
  const installed = existsSync(debian)
    ? readdirSync(debian).map((version) => `${debian}/${version}/bin`)
    : [];
  const named = process.env.NORTHROOT_POSTGRES_BIN;
  const folders = [...(named === undefined ? [] : [named]), ...installed, ...process.env.PATH.split(':')];
  const found = folders.find((path) => existsSync(join(path, 'initdb')));
  if (found === undefined)
    throw new Error('PostgreSQL is not installed: name its bin in NORTHROOT_POSTGRES_BIN');
  return found;
}

/** PostgreSQL refuses root. */
function userOfServer() {
  if (process.getuid() !== 0) return {};
  const idOf = (flag) => Number(execFileSync('id', [flag, 'postgres'], { stdio: 'pipe' }).toString());
  return { uid: idOf('-u'), gid: idOf('-g') };
}

async function freePort() {
  const listening = createServer();
  await new Promise((resolve) => listening.listen(0, '127.0.0.1', resolve));
  const { port } = listening.address();
  await new Promise((resolve) => listening.close(resolve));
  return port;
}
