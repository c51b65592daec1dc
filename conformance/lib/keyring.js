/** The keys of a ledger as its records change them, and which of them may sign an event. */

/** Roles with which a key signs an event of a type that is not about what may be done. */
const ROLES = {
  genesis: ['admin', 'checkpoint', 'event'],
  checkpoint: ['checkpoint', 'event'],
  attestation: ['checkpoint', 'event'],
  key: ['admin'],
};
const OTHERS = ['event'];
const EITHER = ['authority', 'event'];
const AUTHORITY = ['authority'];

export class Keyring {
  /** By keyid, those that are valid now. */
  #keys = new Map();
  #hasAuthority = false;
  #isUsed = false;
  /** Allowed grants by id: principal, parent, and whether a key with role `authority` signed the last suspension. */
  #grants = new Map();

  /** Whether there ever was a key. */
  get isUsed() {
    return this.#isUsed;
  }

  get(keyid) {
    return this.#keys.get(keyid);
  }

  add(key) {
    this.#keys.set(key.keyid, key);
    this.#isUsed = true;
    if (key.roles.includes('authority')) this.#hasAuthority = true;
  }

  /** What an event that counts changes for later ones. */
  note(event, signers) {
    if (event.event_type === 'key') {
      if (event.action === 'add') this.add(event.key);
      else this.#keys.delete(event.key.keyid);
    } else if (isAllowedGrant(event)) {
      const { grant_event_id: parent } = event.authorization;
      this.#grants.set(event.event_id.b64, { principal: event.principal_id, parent: parent?.b64 });
    } else if (event.event_type === 'revocation' && event.effect === 'suspend') {
      const grant = this.#grants.get(event.grant_event_id.b64);
      if (grant !== undefined)
        grant.byAuthority = signers.some((key) => this.#can(key, AUTHORITY, event.principal_id));
    }
  }

  /** Whether a key has a role for the event and covers its principals ("Who may authorize" in the rules of keys). */
  mayRecord(key, event) {
    const { event_type: type, principal_id: own } = event;
    if (Object.hasOwn(ROLES, type)) return this.#can(key, ROLES[type], own);
    if (isAllowedGrant(event)) {
      const parent = this.#grants.get(event.authorization.grant_event_id?.b64);
      if (parent === undefined) return this.#can(key, this.#hasAuthority ? AUTHORITY : OTHERS, own);
      if (this.#can(key, OTHERS, parent.principal)) return true;
      return this.#hasAuthority
        ? this.#can(key, AUTHORITY, own, parent.principal)
        : this.#can(key, OTHERS, own);
    }
    if (!this.#hasAuthority) return this.#can(key, OTHERS, own);
    if (type === 'authorization') {
      const isRootAction = event.decision === 'allow' && event.authorization.grant_event_id === undefined;
      return this.#can(key, isRootAction ? AUTHORITY : EITHER, own);
    }
    if (type === 'approval' || (type === 'adjustment' && event.direction === 'debit'))
      return this.#can(key, EITHER, own);
    if (type === 'adjustment' || type === 'revocation') {
      const grant = this.#grants.get(event.grant_event_id.b64);
      if (grant === undefined) return this.#can(key, AUTHORITY, own);
      if (this.#can(key, AUTHORITY, own, grant.principal)) return true;
      return type === 'revocation' && this.#isOfItsChain(event, grant) && this.#can(key, EITHER, own);
    }
    return this.#can(key, OTHERS, own);
  }

  /** Whether a revocation is by the grantee or one above; a resumption by one above alone, and not of what authority suspended. */
  #isOfItsChain({ principal_id: own, effect }, grant) {
    const above = [];
    for (let at = this.#grants.get(grant.parent); at !== undefined; at = this.#grants.get(at.parent))
      above.push(at.principal);
    if (effect !== 'resume') return own === grant.principal || above.includes(own);
    return above.includes(own) && own !== grant.principal && grant.byAuthority !== true;
  }

  #can({ roles, principals }, wanted, ...covered) {
    return wanted.some((role) => roles.includes(role)) && covered.every((each) => covers(principals, each));
  }
}

function covers(patterns, principal) {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? principal.startsWith(pattern.slice(0, -1)) : pattern === principal,
  );
}

export function isAllowedGrant({ event_type: type, decision, authorization }) {
  return type === 'authorization' && decision === 'allow' && authorization.kind === 'grant';
}
