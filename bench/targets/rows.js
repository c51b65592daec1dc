/** The table of targets: which ratio of which tasks, what it is to be, and in what it is measured. */

const MB = (number) => `${number.toFixed(0)} MB`;
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const decimals = (number) => number.toFixed(2);

/** What one thing takes beside another, in wall time and in CPU, for the row's note. */
const bothOf = (a, b) =>
  `CPU ${decimals(a.cpu / b.cpu)}, wall ${decimals(a.wall / b.wall)}; ${MB(a.rss)} beside ${MB(b.rss)}`;

/**
 * `tasks` are those that a row is made of; `measure` gets the best sample of each, by name, and how many records there are. A row is met
 * if its value is at least `atLeast`, or at most `atMost`; `stretch` is what would be better still. `note` says more of the same samples.
 */
export const ROWS = [
  {
    id: 'openssl',
    title: 'signed, 2 threads: events/s ÷ openssl speed -multi 2 verifies/s',
    basis: 'wall',
    tasks: ['signed2', 'opensslSpeed'],
    atLeast: 3.5,
    stretch: 4.5,
    measure: ({ signed2, opensslSpeed }, records) => rateOf(signed2, records) / opensslSpeed.rate,
    note: ({ signed2, opensslSpeed }, records) =>
      `${rateOf(signed2, records).toFixed(0)}/s beside ${opensslSpeed.rate.toFixed(0)}/s`,
  },
  {
    id: 'go',
    title: 'signed, 2 threads: events/s ÷ Go, same file, 2 threads',
    basis: 'wall',
    tasks: ['signed2', 'go2'],
    atLeast: 2,
    measure: ({ signed2, go2 }) => go2.wall / signed2.wall,
    note: ({ signed2, go2 }) => `CPU ${decimals(go2.cpu / signed2.cpu)}`,
  },
  {
    id: 'digest',
    title: 'checkpoint-signed, 2 threads: time ÷ openssl dgst -sha256',
    basis: 'wall',
    tasks: ['sealed2', 'opensslDigest'],
    atMost: 3.5,
    stretch: 2.5,
    measure: ({ sealed2, opensslDigest }) => sealed2.wall / opensslDigest.wall,
    note: ({ sealed2 }, records) => `${rateOf(sealed2, records).toFixed(0)}/s`,
  },
  twoThreads('signed', 'signed1', 'signed2', 1.7),
  twoThreads('unsigned', 'sealed1', 'sealed2', 1.5),
  {
    id: 'rules',
    title: 'linkage, caps and delegation ÷ the same lines as x. events',
    basis: 'CPU',
    tasks: ['linked1', 'extension1'],
    atMost: 1.15,
    measure: ({ linked1, extension1 }) => linked1.cpu / extension1.cpu,
    note: ({ linked1, extension1 }) => `unsigned, 1 thread; wall ${decimals(linked1.wall / extension1.wall)}`,
  },
  memory('rss', 'RSS, plain (signed)', 'signed2', 200),
  memory('rss-sealed', 'RSS, plain (checkpoint-signed)', 'sealed2', 200),
  memory('rss-open', 'RSS, all actions open', 'open2', 500),
  memory('rss-limited', 'RSS, rate-limited', 'limited2', 300),
  memory('rss-large', 'RSS, ten times the records, plain (checkpoint-signed)', 'large2', 350),
  resume('resume-signed', 'signed', 'resumeSigned', 'signed2', 0.03),
  resume('resume-unsigned', 'unsigned', 'resumeSealed', 'sealed2', 0.3),
  {
    id: 'keys',
    title: '1,000 keys in rotation ÷ 1 key, within 200 MB',
    basis: 'wall',
    tasks: ['keys2', 'signed2'],
    atLeast: 0.4,
    measure: ({ keys2, signed2 }) => signed2.wall / keys2.wall,
    isMet: (value, { keys2 }) => value >= 0.4 && keys2.rss <= 200,
    note: ({ keys2, signed2 }) => bothOf(keys2, signed2),
  },
  {
    id: 'append',
    title: 'signed append, one thread ÷ raw signing',
    basis: 'CPU',
    tasks: ['append', 'appendUnindexed', 'sign1'],
    atLeast: 0.5,
    measure: ({ append, sign1 }) => sign1.cpu / append.cpu,
    note: ({ append, appendUnindexed, sign1 }) =>
      `${decimals(sign1.cpu / appendUnindexed.cpu)} without the index; wall ${decimals(sign1.wall / append.wall)}`,
  },
  {
    id: 'append-threads',
    title: 'signed append, signing ahead in 1 thread ÷ raw signing on 2 threads',
    basis: 'wall',
    tasks: ['appendThreads', 'appendThreadsUnindexed', 'sign2', 'sign1'],
    atLeast: 0.8,
    measure: ({ appendThreads, sign2 }) => sign2.wall / appendThreads.wall,
    note: ({ appendThreads, appendThreadsUnindexed, sign2, sign1 }) =>
      `${decimals(sign2.wall / appendThreadsUnindexed.wall)} without the index; beside 1 thread ${decimals(sign1.wall / appendThreads.wall)}, ${decimals(sign1.wall / appendThreadsUnindexed.wall)}`,
  },
  {
    id: 'sync',
    title: "fdatasync's share of a streamed append",
    basis: 'wall',
    tasks: ['append'],
    atMost: 0.15,
    format: percent,
    measure: ({ append }) => append.share,
    note: ({ append }) => `${append.syncing.toFixed(0)} ms in all`,
  },
  start('start-verify', 'verify of 20 records, whole process ÷ node -e 0', 'verify', 2.5),
  start('start-version', '--version, whole process ÷ node -e 0', 'version', 1.6),
];

/** Others on the same lines, one thread each, as rates beside northroot's; there is no target. */
export const COMPARISONS = ['sample1', 'go1', 'python', 'jq', 'sha256sum'];

const rateOf = ({ wall }, records) => (1000 * records) / wall;

function twoThreads(what, one, two, atLeast) {
  return {
    id: `threads-${what}`,
    title: `2 threads ÷ 1, ${what}`,
    basis: 'wall',
    tasks: [one, two],
    atLeast,
    measure: (samples) => samples[one].wall / samples[two].wall,
    note: (samples) => `2 threads take ${decimals(samples[two].cpu / samples[one].cpu)} × the CPU`,
  };
}

/** The largest that any of the rounds saw. */
function memory(id, title, task, mostMb) {
  return {
    id,
    title,
    basis: 'VmHWM',
    tasks: [task],
    atMost: mostMb,
    format: MB,
    measure: (samples) => samples[task].rss,
  };
}

function resume(id, what, task, full, atMost) {
  return {
    id,
    title: `resume after 1 % growth ÷ full, ${what}`,
    basis: 'wall, start-up subtracted',
    tasks: [task, full, 'small2'],
    atMost,
    measure: (samples) => ratio(samples, 'wall'),
    note: (samples) => `CPU ${ratio(samples, 'cpu').toFixed(3)}`,
    format: (value) => value.toFixed(3),
  };
  function ratio(samples, by) {
    const begin = samples.small2[by];
    return (samples[task][by] - begin) / (samples[full][by] - begin);
  }
}

function start(id, title, command, atMost) {
  return {
    id,
    title,
    basis: 'wall',
    tasks: ['start'],
    atMost,
    measure: ({ start: times }) => times[command] / times.node,
    note: ({ start: times }) => `CPU ${decimals(times[`${command}Cpu`] / times.nodeCpu)}`,
  };
}

/** What a row says, of the best samples of its tasks. `records` is how many a ledger has. */
export function fillRow(row, samples, records) {
  const value = row.measure(samples, records);
  const { atLeast, atMost, stretch, format = decimals, isMet } = row;
  const isWithin = (limit) => (atLeast === undefined ? value <= limit : value >= limit);
  return {
    id: row.id,
    title: row.title,
    basis: row.basis,
    value,
    measured: format(value),
    target: `${atLeast === undefined ? 'at most' : 'at least'} ${format(atLeast ?? atMost)}`,
    met: isMet?.(value, samples) ?? isWithin(atLeast ?? atMost),
    ...(stretch !== undefined && { stretch, stretch_met: isWithin(stretch) }),
    note: row.note?.(samples, records) ?? '',
  };
}
