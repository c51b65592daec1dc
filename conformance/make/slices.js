/**
 * Ledgers that spend slices, with their parents or without: further ones than the fixtures have, with what a verifier must find in each, and
 * on the way the parameters, amounts and notes that the two ledgers are held to.
 */

import { dec, int, meters } from '../../fixtures/make/events.js';
import { digest, joinLines } from '../../fixtures/make/ledger.js';
import { Overseen } from '../../fixtures/make/overseen.js';

const SLICE = 'northroot.slice';
const ENDS = '2026-01-02T00:00:00Z';
const NAMED = '/event/authorization/slice/event_id';
const CAPS = '/event/authorization/bounds/meter_caps';
const TEN = { usd: int(10) };
const textOf = ({ alg, b64 }) => `${alg}:${b64}`;

/** Cases as expected.json has them; their ledgers are added to the files. */
export function makeSliceLedgers(files) {
  return [
    ...makeAmounts(files),
    ...makeLinks(files),
    ...makeParents(files),
    ...makeSettlements(files),
    makeTwoParents(files),
  ];
}

/** A ledger that sets amounts aside. */
class Parent {
  constructor(name, bounds = {}) {
    this.name = `vectors/${name}-parent.jsonl`;
    this.scene = new Overseen(`${name}-parent`);
    const all = { allowed_tools: [SLICE], meter_caps: meters({ usd: int(100) }), ...bounds };
    this.grant = this.scene.grant(all);
  }

  /** An allowed slice for a child, begun unless `isBegun` says otherwise; as the child's grant names it. */
  setAside(child, reserve = TEN, { isBegun = true, ...more } = {}) {
    const call = { tool: SLICE, params: child.params };
    const own = this.scene.allow(this.grant, { ...call, reserve, expires: ENDS, ...more });
    if (isBegun) this.scene.start(own, call);
    return { ledger_id: this.scene.ledger.ledgerId, event_id: own };
  }

  settle(child, slice, used, note) {
    const call = { tool: SLICE, params: child.params };
    return this.scene.run(slice.event_id, { ...call, used, output_digest: note });
  }

  seal() {
    this.scene.seal();
    return this;
  }
}

/** A ledger that spends them. */
class Child {
  constructor(name) {
    this.name = `vectors/${name}.jsonl`;
    this.scene = new Overseen(name);
    this.params = `{"ledger_id":"${textOf(this.scene.ledger.ledgerId)}"}`;
  }

  spend(slice, bounds = {}) {
    const all = { meter_caps: meters(TEN), expires_at: ENDS, ...bounds };
    return this.scene.grant(all, { slice });
  }

  call(grantId, used) {
    return this.scene.run(this.scene.allow(grantId, { reserve: used }), { used });
  }

  seal() {
    this.scene.seal();
    const { event } = JSON.parse(this.scene.ledger.lines.at(-1));
    return digest(event.note);
  }

  close(grantId) {
    this.scene.revoke(grantId, 'stop');
    return this.seal();
  }
}

function add(files, ...ledgers) {
  for (const { name, scene } of ledgers) files.set(name, scene.ledger.bytes);
}

/** A case of a child with its parents; what was stated of the child's scene is what must be found. */
function caseOf(child, parents, about, intermediate = {}) {
  const { findings, verdict } = child.scene;
  const params = { params: child.params, params_digest: textOf(digest(child.params)) };
  return {
    ledger: child.name,
    ...(parents.length > 0 && { parents: parents.map(({ name }) => name) }),
    about,
    verdict,
    findings,
    intermediate: { ...params, ...intermediate },
  };
}

/** Of every unit that the slice reserves, or that the parent's grant caps, the child caps at most what was set aside. */
function makeAmounts(files) {
  const two = { meter_caps: meters({ tokens: int(50), usd: int(100) }) };
  const exceeded = (pointer) => (child) => child.scene.violates('SLICE_EXCEEDED', pointer);
  const rows = [
    ['equal', 'a cap of another type that is equal', {}, TEN, { usd: dec('10.00') }],
    ['third', 'a third is not more than a third', {}, { usd: third() }, { usd: third() }],
    [
      'third-over',
      'a decimal that is more than a third by its last digit',
      {},
      { usd: third() },
      { usd: dec(`0.${'3'.repeat(37)}4`) },
      exceeded(`${CAPS}/0/amount`),
    ],
    [
      'zero',
      'a unit that the parent caps and that nothing is set aside of: 0',
      two,
      TEN,
      { tokens: int(0), ...TEN },
    ],
    [
      'zero-over',
      'a unit that the parent caps and that nothing is set aside of: more than 0',
      two,
      TEN,
      { tokens: int(1), ...TEN },
      exceeded(`${CAPS}/0/amount`),
    ],
    ['uncapped', 'a unit that the parent caps, and the child does not', two, TEN, TEN, exceeded(CAPS)],
    [
      'more-units',
      'a unit that the parent knows nothing of, of which nothing is set aside',
      {},
      TEN,
      { calls: int(1), ...TEN },
      exceeded(`${CAPS}/0/amount`),
    ],
  ];
  return rows.map(([name, about, bounds, reserve, caps, state = () => undefined]) => {
    const child = new Child(`slice-${name}`);
    const parent = new Parent(`slice-${name}`, bounds);
    const slice = parent.setAside(child, reserve);
    parent.seal();
    child.spend(slice, { meter_caps: meters(caps) });
    state(child);
    child.seal();
    add(files, child, parent);
    return caseOf(child, [parent], about, { set_aside: meters(reserve), capped: meters(caps) });
  });
}

function third() {
  return { t: 'rat', n: '1', d: '3' };
}

/** What the child names has to be an allowed, begun, lawful action of the parent. */
function makeLinks(files) {
  const notFound = (child) => child.scene.invalid('SLICE_NOT_FOUND', NAMED);
  const rows = [
    ['denied', 'a slice that was denied', {}, TEN, { decision: 'deny', decision_code: 'NO', isBegun: false }],
    ['over-cap', 'a slice beyond the cap of its grant', {}, { usd: int(101) }, {}],
    [
      'wildcard',
      'a slice under a pattern that is not its whole name',
      { allowed_tools: ['northroot.*'] },
      TEN,
      {},
    ],
    ['not-begun', 'a slice that was allowed, and not begun', {}, TEN, { isBegun: false }],
  ];
  return rows.map(([name, about, bounds, reserve, more]) => {
    const child = new Child(`slice-${name}`);
    const parent = new Parent(`slice-${name}`, bounds);
    const slice = parent.setAside(child, reserve, more);
    parent.seal();
    child.spend(slice);
    notFound(child);
    child.seal();
    add(files, child, parent);
    return caseOf(child, [parent], about, { set_aside: meters(reserve) });
  });
}

/** One child, and what is given as its parent. */
function makeParents(files) {
  const child = new Child('slice-of-a-parent');
  const parent = new Parent('slice-of-a-parent');
  const slice = parent.setAside(child);
  const short = joinLines(parent.scene.ledger.lines.slice(0, 2));
  const unsealed = parent.scene.ledger.bytes;
  parent.seal();
  const sealed = parent.scene.ledger.bytes;
  parent.scene.revoke(parent.grant, 'stop');
  parent.seal();
  child.call(child.spend(slice), { usd: int(10) });
  child.seal();
  const other = new Parent('slice-of-another-parent').seal();
  add(files, child, parent, other);
  const given = (name, bytes) => {
    files.set(`vectors/${name}.jsonl`, bytes);
    return { name: `vectors/${name}.jsonl` };
  };
  const torn = sealed.subarray(0, -1);
  const found = { ...caseOf(child, [], '').intermediate, set_aside: meters(TEN) };
  const cases = [
    [[parent], 'the parent revoked the grant of the slice: that does not cross'],
    [[given('slice-parent-sealed', sealed)], 'the parent, as it was before that'],
    [[given('slice-parent-unsealed', unsealed)], 'the parent, of which no checkpoint covers the slice'],
    [[], 'no parent'],
    [[other], 'another ledger than the parent'],
    [[given('slice-parent-torn', torn)], 'the parent, with a torn last line'],
    [[other, parent], 'another ledger, and the parent'],
  ].map(([parents, about]) => caseOf(child, parents, about, found));
  const cut = {
    ...caseOf(child, [given('slice-parent-short', short)], 'the parent, cut off before the slice', found),
    verdict: 'invalid',
    findings: [{ code: 'SLICE_NOT_FOUND', line: 2, pointer: NAMED }],
  };
  return [...cases, cut];
}

/** How a slice ended in both ledgers. */
function makeSettlements(files) {
  const made = [];
  const settle = (name, about, { spend, told, after = () => undefined, until }) => {
    const child = new Child(`slice-${name}`);
    const parent = new Parent(`slice-${name}`);
    const slice = parent.setAside(child);
    parent.seal();
    const grantId = child.spend(slice);
    spend(child, grantId);
    const note = until === undefined ? child.close(grantId) : until(child, grantId);
    after(child, grantId);
    parent.settle(child, slice, told, note);
    parent.seal();
    add(files, child, parent);
    made.push(
      caseOf(child, [parent], about, {
        set_aside: meters(TEN),
        told: meters(told),
        note_digest: textOf(note),
      }),
    );
  };
  const none = () => undefined;
  settle('unused', 'nothing was used', { spend: none, told: { usd: int(0) } });
  settle('unused-silent', 'nothing was used, and nothing was told of it', { spend: none, told: {} });
  settle('all-used', 'all of it was used', {
    spend: (child, id) => child.call(id, { usd: int(10) }),
    told: { usd: dec('10.0') },
  });
  settle('in-thirds', 'three calls of a third are one', {
    spend: (child, id) => [1, 2, 3].forEach(() => child.call(id, { usd: third() })),
    told: { usd: int(1) },
  });
  settle('released-afterwards', 'a checkpoint after it, and nothing else', {
    spend: (child, id) => child.call(id, { usd: int(2) }),
    told: { usd: int(2) },
    after: (child) => void child.seal(),
  });
  settle('suspended', 'settled while its grant was suspended, not revoked', {
    spend: (child, id) => child.call(id, { usd: int(2) }),
    told: { usd: int(2) },
    until(child, id) {
      child.scene.suspend(id, 'stop');
      return child.seal();
    },
    after: (child) => child.scene.violates('SLICE_MISMATCH', NAMED, 2),
  });
  settle('finished', 'settled after a revocation that let work finish', {
    spend: (child, id) => child.call(id, { usd: int(2) }),
    told: { usd: int(2) },
    until(child, id) {
      child.scene.revoke(id, 'finish');
      return child.seal();
    },
    after: (child) => child.scene.violates('SLICE_MISMATCH', NAMED, 2),
  });
  settle('told-less', 'less was told than was used', {
    spend: (child, id) => child.call(id, { usd: dec('2.01') }),
    told: { usd: int(2) },
    after: (child) => child.scene.violates('SLICE_MISMATCH', NAMED, 2),
  });
  return made;
}

/** Two ledgers set aside for one. */
function makeTwoParents(files) {
  const child = new Child('slice-of-two');
  const parents = ['slice-of-two-a', 'slice-of-two-b'].map((name) => new Parent(name));
  for (const parent of parents) {
    const slice = parent.setAside(child);
    parent.seal();
    child.call(child.spend(slice), { usd: int(3) });
  }
  child.seal();
  add(files, child, ...parents);
  return caseOf(child, parents, 'a ledger that spends slices of two others');
}
