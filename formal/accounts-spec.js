// The accounts of SPEC §8 (rules 1, 2, 5, 8, 9, 11) and the starts of §3.8 as a small executable specification, in whole numbers.
// Written from the text.
// step(state, op) -> codes of the event; state is plain data. An op names grants and actions by their number.
export const empty = () => ({ grants: [], actions: [], starts: 0, told: new Set() });
export const clone = (s) => ({
  grants: s.grants.map((g) => ({ ...g, used: { ...g.used }, held: { ...g.held } })),
  actions: s.actions.map((a) => ({ ...a })),
  starts: s.starts,
  told: new Set(s.told),
  credited: new Set(s.credited),
});
const chain = (s, i) => {
  const c = [];
  for (let g = s.grants[i]; g; g = s.grants[g.parent]) c.push(g);
  return c;
};
const each = (v) => Object.entries(v);
const caps = (g, u) => u in g.caps;
const once = (s, code, g, u, out) => {
  const k = `${code} ${g} ${u}`;
  if (!s.told.has(k)) {
    s.told.add(k);
    out.push(code);
  }
};

export function step(s, op) {
  const out = [];
  switch (op.k) {
    case 'grant': {
      const parent = op.parent ?? -1;
      if (parent >= 0) {
        const p = s.grants[parent];
        for (const [u, cap] of each(p.caps))
          if (!(u in op.caps) || op.caps[u] > cap) out.push('DELEGATION_EXCEEDED');
      }
      const zero = Object.fromEntries(Object.keys(op.caps).map((u) => [u, 0]));
      s.grants.push({ parent, caps: op.caps, who: op.who, used: { ...zero }, held: { ...zero } });
      return out;
    }
    case 'action': {
      const g = s.grants[op.g];
      s.actions.push({
        g: op.g,
        reserve: op.reserve,
        deny: op.deny === true,
        spent: false,
        begun: false,
        start: undefined,
      });
      if (op.deny) return out;
      if ((op.who ?? g.who) !== g.who) out.push('PRINCIPAL_MISMATCH');
      for (const [u, n] of each(op.reserve)) {
        if (n === 0) continue;
        const c = chain(s, op.g).filter((x) => caps(x, u));
        if (c.length === 0) once(s, 'METER_UNCAPPED', op.g, u, out);
        for (const x of c) if (x.used[u] + (x.held[u] += n) > x.caps[u]) out.push('RESERVATION_OVER_CAP');
      }
      return out;
    }
    case 'run':
    case 'release': {
      // of an action
      const a = s.actions[op.a];
      const used = op.k === 'release' ? {} : op.used;
      const failed = op.k === 'release' || op.failed === true;
      if (a.deny) {
        if (!(failed && each(used).every(([, n]) => n === 0))) out.push('EXECUTION_UNDER_DENY');
        return out;
      }
      const first = !a.spent;
      if (!first) out.push('AUTHORIZATION_REUSED');
      const reserve = first ? a.reserve : {};
      a.spent = true;
      a.start = undefined;
      const silent = {};
      if (op.k === 'release' && first && a.begun) {
        out.push('RELEASE_OF_STARTED');
        Object.assign(silent, reserve);
      } else if (!failed) {
        for (const [u, n] of each(reserve)) {
          if (u in used || n === 0) continue;
          silent[u] = n;
          once(s, 'METER_UNREPORTED', a.g, u, out);
        }
      }
      count(s, a.g, used, reserve, silent, out);
      return out;
    }
    case 'start': {
      // It counts where the action is open and nobody has begun it, or where it takes over the open start.
      const a = s.actions[op.a];
      if (a.deny || a.spent || (a.start !== undefined && op.takes !== a.start)) return out;
      if (a.start !== undefined) {
        for (const x of chain(s, a.g)) {
          for (const [u, n] of each(a.reserve)) {
            if (caps(x, u) && n > 0 && (x.used[u] += n) + x.held[u] > x.caps[u])
              out.push('METER_CAP_EXCEEDED');
          }
        }
      }
      a.begun = true;
      a.start = s.starts++;
      return out;
    }
    case 'direct':
      count(s, op.g, op.used, {}, {}, out);
      return out;
    case 'credit': {
      const c = chain(s, op.g);
      let bad = c.some((x) => x.who === op.who);
      if (bad) out.push('SELF_CREDIT');
      const [own] = c;
      for (const [u, n] of each(op.meters)) {
        if (!caps(own, u)) once(s, 'METER_UNCAPPED', op.g, u, out);
        else if (c.some((x) => caps(x, u) && n > x.used[u])) {
          out.push('ADJUSTMENT_EXCEEDED');
          bad = true;
        }
      }
      if (!bad) (s.credited ??= new Set()).add(op.g);
      if (!bad)
        for (const [u, n] of each(op.meters))
          if (caps(own, u)) for (const x of c) if (caps(x, u)) x.used[u] -= n;
      return out;
    }
    case 'debit': {
      const c = chain(s, op.g);
      for (const [u, n] of each(op.meters)) {
        if (!caps(c[0], u)) {
          once(s, 'METER_UNCAPPED', op.g, u, out);
          continue;
        }
        for (const x of c)
          if (caps(x, u) && n > 0 && (x.used[u] += n) + x.held[u] > x.caps[u]) out.push('METER_CAP_EXCEEDED');
      }
      return out;
    }
  }
  throw new Error(op.k);
}

/** Rule 5: an execution replaces its action's reservation; the event that goes over is named. `silent` counts without being stated. */
function count(s, g, stated, reserve, silent, out) {
  const used = { ...stated, ...silent };
  for (const [u, n] of each(stated)) {
    if (u in reserve && n > reserve[u]) out.push('RESERVATION_EXCEEDED');
    if (n > 0 && !(u in reserve) && !chain(s, g).some((x) => caps(x, u)))
      once(s, 'METER_UNCAPPED', g, u, out);
  }
  for (const x of chain(s, g)) {
    for (const u of new Set([...Object.keys(reserve), ...Object.keys(used)])) {
      if (!caps(x, u)) continue;
      const [n, back] = [used[u] ?? 0, reserve[u] ?? 0];
      x.held[u] -= back;
      x.used[u] += n;
      if (n > 0 && (x.used[u] > x.caps[u] || (n > back && x.used[u] + x.held[u] > x.caps[u])))
        out.push('METER_CAP_EXCEEDED');
    }
  }
}

/** What must hold of every state, whatever came before (checked beside the comparison). */
export function invariants(s) {
  const bad = [];
  s.grants.forEach((g, i) => {
    for (const u of Object.keys(g.caps)) {
      if (g.used[u] < 0 || g.held[u] < 0) bad.push(`negative ${u} of ${i}`);
      // What is held is just what open actions under it have reserved.
      const open = s.actions
        .filter((a) => !a.deny && !a.spent && chain(s, a.g).includes(g))
        .reduce((n, a) => n + (a.reserve[u] ?? 0), 0);
      if (open !== g.held[u]) bad.push(`held ${u} of ${i}: ${g.held[u]}, open ${open}`);
      // Roll-up: a parent that caps the unit has used at least what its child has.
      const p = s.grants[g.parent];
      // (Not after a credit to the parent alone: rule 11 lowers the named grant and those above it, never those below.)
      if (p && u in p.caps && !s.credited?.has(g.parent) && g.used[u] > p.used[u])
        bad.push(`roll-up of ${u}: ${i}`);
    }
  });
  return bad;
}
