"""An independent verifier of northroot ledgers, written from docs/spec and schemas alone. README.md says what it leaves out."""

import json
import re
import time
from canonical import canonical, once, pointer, read, utf16
from keys import NAME, Key, Tree, b64url, digest, from_b64, from_b64url, key_id, keyid, pae, parse_note, sha
from rules import Rules
from shape import COMMON, KNOWN, check, check_event, check_record, digest_text, holds, instant, is_digest, timestamp

VIOLATIONS = '''ALLOW_WITH_FAILED_CHECK HYGIENE_NOT_OK APPROVAL_REUSED PRINCIPAL_MISMATCH AUTHORIZATION_BEFORE_GRANT
DELEGATION_EXCEEDED TOOL_NOT_ALLOWED GRANT_NOT_YET_VALID GRANT_EXPIRED ACTION_CAP_EXCEEDED RESERVATION_OVER_CAP GRANT_DENIED
APPROVAL_EXCEEDED APPROVAL_MISSING GRANT_REVOKED REQUEST_REPEATED SLICE_REUSED SLICE_MISMATCH SLICE_EXCEEDED AUTHORIZATION_REUSED
EXECUTION_UNDER_DENY EXECUTION_BEFORE_AUTHORIZATION ACTION_EXPIRED RESERVATION_EXCEEDED METER_CAP_EXCEEDED RATE_LIMIT_EXCEEDED
CONCURRENCY_EXCEEDED OUTPUT_MODE_EXCEEDED SELF_CREDIT ADJUSTMENT_EXCEEDED'''.split()
WARNINGS = '''HYGIENE_LOSSY QUANTITY_LOSSY INTENT_UNLINKED RESOURCE_NOT_GRANTED TIME_INCONSISTENT RELEASE_OF_STARTED
METER_UNREPORTED'''.split()
INFOS = ('EVENT_TYPE_UNKNOWN', 'TIME_REGRESSION', 'METER_UNCAPPED', 'TAIL_UNSEALED')
CLASSES = {**dict.fromkeys(VIOLATIONS, 'violation'), **dict.fromkeys([*WARNINGS, *INFOS[:3]], 'none')}
ORDER = ('invalid', 'violation', 'warning', 'info')
ROLES = {'genesis': ('admin', 'checkpoint', 'event'), 'checkpoint': ('checkpoint', 'event'), 'attestation': ('checkpoint', 'event'),
         'key': ('admin',)}
SEGMENT = re.compile(r'([0-9]{20})\.jsonl$')

class Refused(Exception):
    """What a verifier cannot begin with: status 2."""

class Record:
    def __init__(self, at, index):
        self.where, self.index = at, index
        self.seq = self.id = self.event = self.type = None
        self.ok = self.is_bare = self.signed = self.denied = self.is_overdue = self.is_new = self.is_unbound = False
        self.invalid = self.own_invalid = self.violation = False
        self.counting, self.under, self.outcomes, self.attests = [], [], [], None

    @property
    def place(self):
        return self.index if self.seq is None else self.seq

    def counts(self):
        """Whether it is valid at its own place."""
        return not self.own_invalid and not self.is_overdue

    def verdict(self):
        return 'invalid' if self.invalid else 'violation' if self.violation else 'denied' if self.denied else 'ok'

class Checkpoint:
    def __init__(self, note, rec, path=None, right=True):
        self.note, self.rec, self.path, self.size, self.right = note, rec, path, note.size, right
        self.seals = self.is_dated = False
        self.log_keys, self.pinned, self.names, self.by_policy, self.signed = {}, set(), set(), set(), {}

class Trust:
    """A trust policy, and a witness policy."""

    def __init__(self, policy=None, witness=None):
        self.keys, self.origins, self.require, self.is_given = [], None, {}, policy is not None
        self.logs, self.witnesses, self.groups, self.quorum, self.names_log, self.unknown = {}, {}, {}, None, False, 0
        if policy is not None:
            self._read(policy)
        for line in witness.decode().split('\n')[:-1] if witness is not None else ():
            self._read_witness(line.split())
        self.log_bytes = {key.bytes for key in self.keys if 'checkpoint' in key.roles} | {raw for _, _, raw in self.logs}

    def _read(self, data):
        try:
            value = json.loads(data.decode(), object_pairs_hook=once)
        except ValueError as error:
            raise Refused(f'the policy is not JSON: {error}') from error
        faults = [pointer(path) for path, _ in check('trust-policy.json', value)] or ['too large'] * (len(data) > 1 << 20)
        for index, entry in enumerate(value['keys'] if not faults else ()):
            key = Key(entry, pinned=True)
            fault = key.fault() or ('keyid' if any(key.id == other.id for other in self.keys) else None)
            if not fault and 'witness' in key.roles:
                fault = 'public_key' if key.kind == 'p256' else None if key.name and NAME.fullmatch(key.name) else 'name'
            faults += [f'/keys/{index}/{fault}'] * bool(fault)
            self.keys.append(key)
        logs = [key for key in self.keys if 'checkpoint' in key.roles and key.kind != 'p256']
        names = {key.name for key in self.keys if 'witness' in key.roles and key not in logs}
        self.origins, self.require = (value.get('origins'), value.get('require', {})) if not faults else (None, {})
        for name, most in (('checkpoint_quorum', logs), ('witness_threshold', names)):
            faults += ['/require/' + name] * (self.require.get(name, 0) > len(most))
        if faults:
            raise Refused('the policy is malformed: ' + faults[0])

    def _read_witness(self, words):
        kind = words[0] if words else '#'
        if kind in ('log', 'witness'):
            name, hex_, text = words[1 if kind == 'log' else 2].split('+', 2)
            raw = from_b64(text)
            if raw[0] not in ((1, 6) if kind == 'log' else (4, 6)):
                self.unknown += 1
                self.names_log |= kind == 'log'
                self.groups[words[1]] = (1, [])
            elif key_id(name, raw[0], raw[1:]).hex() != hex_:
                raise Refused('the witness policy has a wrong key')
            elif kind == 'log':
                self.names_log = True
                self.logs[name, raw[0], raw[1:]] = 'log'
            else:
                self.witnesses[name, raw[0], raw[1:]] = words[1]
        elif kind == 'group':
            self.groups[words[1]] = {'any': 1, 'all': len(words) - 3}.get(words[2]) or int(words[2]), words[3:]
        elif kind == 'quorum':
            self.quorum = words[1] if words[1] != 'none' else None

    def meets_quorum(self, signed, name):
        need, members = self.groups.get(name, (0, ()))
        return sum(self.meets_quorum(signed, member) for member in members) >= need if name in self.groups else name in signed

class Verifier(Rules):
    def __init__(self, trust=None, held=(), parents=(), predecessor=None, now=None, trace=None):
        self.trust, self.held, self.predecessor, self.now, self.trace, self.sums = trust or Trust(), held, predecessor, now, trace, {}
        self.parents = {parent.ledger_id: parent for parent in parents}
        self.findings, self.folds, self.ids, self.pending, self.types = [], {}, {}, {}, {}
        self.count = self.bytes = self.expected = self.other = self.unknown_lines = self.point_count = 0
        self.tree, self.prev, self.roots, self.recs = Tree(), sha(), [sha()], []
        self.layout = self.ledger_id = self.tip = self.origin = self.clock = self.last_seal = None
        self.genesis, self.keys, self.is_at_end = {}, {key.id: key for key in self.trust.keys}, False
        self.authority = any('authority' in key.roles for key in self.trust.keys)
        self.points, self.by_event, self.signers, self.relation = [], {}, {}, 'other-ledger'
        self.signatures = {'valid': 0, 'invalid': 0, 'unverified': 0, 'missing': 0}
        self.begin_rules()

    def find(self, code, rec, place=None, cause=None, cls=None, at=(), related=None):
        """Tells of a finding, at a record, at a location, or (None) at the end."""
        cls, is_record = cls or CLASSES.get(code, 'invalid'), isinstance(rec, Record)
        severity = 'error' if cls != 'none' else 'info' if code in INFOS else 'warning'
        where = [*((rec.where if is_record else rec or self.end)[:4 - len(at)]), *at]
        if is_record:
            rec.invalid |= cls == 'invalid'
            rec.own_invalid |= cls == 'invalid' and not self.is_at_end
            rec.violation |= cls == 'violation'
            place = place.removeprefix('/event') if rec.is_bare and place else place
        folds = cause is not None and len(utf16(cause)) <= 512
        if folds and (code, severity, cause) in self.folds:
            first = self.folds[code, severity, cause]
            first['folded'] = first.get('folded', 0) + 1
            return
        at = dict(zip(('file', 'line', 'byte_offset', 'byte_length'), where))
        finding = {'code': code, 'severity': severity, 'class': cls, 'at': at if place is None else {**at, 'pointer': place},
                   'seq': rec.seq if is_record else None, 'event_id': rec.id if is_record else None}
        if is_record and rec.event is not None and not self.is_at_end:
            finding.update(about(rec.event))
        if related is not None:
            finding['related'] = [{'file': related.where[0], 'line': related.where[1], 'seq': related.seq, 'event_id': related.id}]
        self.findings.append(finding)
        if folds and len(self.folds) < 4096:
            self.folds[code, severity, cause] = finding

    # Lines

    def run(self, name, files):
        self.path, self.end = name, [name, 1, 0, 0]
        for file, data, first in files:
            lines, offset = data.split(b'\n'), 0
            self.bytes += len(data)
            for number, line in enumerate(lines[:-1], 1):
                self.rec = Record([file, number, offset, len(line)], self.count)
                offset += len(line) + 1
                if not self.tell(not line, 'LINE_BLANK'):
                    self.line(self.rec, line, first if number == 1 else None)
            self.end = [file, len(lines), offset, 0]
            if lines[-1]:
                self.find('LINE_TORN', Record([*self.end[:3], len(lines[-1])], None))
        self.finish()
        return self

    def line(self, rec, line, first):
        self.recs.append(rec)
        clock = self.clock
        if not self.tell(len(line) > 65535, 'LINE_TOO_LONG'):
            self.judge(rec, line, first)
        self.tell(rec.is_overdue, 'CHECKPOINT_MISSING', cause=str(self.last_seal and self.last_seal.rec.id))
        self.prev, self.count = sha(b'\0', line), self.count + 1
        self.tree.add(self.prev)
        self.roots.append(self.tree.root())
        self.other = self.expected + 1 if rec.seq == self.expected else self.other + 1
        self.expected = (self.expected if rec.seq is None else rec.seq) + 1
        if self.trace is not None:
            self.trace.append(self.step(rec, clock))
        if rec.event is not None and isinstance(rec.type, str):
            self.types[rec.type] = self.types.get(rec.type, 0) + 1
        if rec.id is not None:
            self.tip = rec.id
            self.ids.setdefault(rec.id, rec)
            for waiting in self.pending.pop(rec.id, ()):
                code = 'AUTH_AFTER_EXECUTION' if rec.type == 'authorization' else 'AUTH_NOT_AN_AUTHORIZATION'
                self.find(code, waiting, '/event/auth_event_id', 'late ' + rec.id)

    def step(self, rec, clock):
        """What holds after a record, as the conformance protocol has it."""
        changed = []
        for grant, unit, one in [(grant, *one) for grant in self.grants.values() for one in grant.accounts.items()]:
            sums = {'used': str(one.used), 'reserved': str(one.reserved), 'estimated': str(min(one.estimated, one.used))}
            if self.sums.get((grant, unit)) != sums:
                self.sums[grant, unit] = sums
                changed.append({'grant': grant.id, 'unit': unit, **sums})
        return {'seq': rec.index, 'clock': None if clock is None else timestamp(clock), 'verdict': rec.verdict(), 'accounts': changed,
                'signatures': rec.outcomes, 'root': digest(self.roots[-1]), 'approvals': [
                    one.rec.id for one in self.approvals.values() if rec.id and one.used_by == rec.id]}

    def judge(self, rec, line, first):
        """Steps 1 to 12."""
        value, fault = read(line)
        if fault:
            self.find(fault[0], rec, fault[2], at=(rec.where[2] + fault[1], int(fault[1] < len(line))))
            return
        if self.tell(not isinstance(value, dict), 'SCHEMA', ''):
            return
        self.layout = self.layout or ('bare' if 'event_type' in value and 'event' not in value else 'records')
        rec.is_bare = self.layout == 'bare'
        event, faults = (value, []) if rec.is_bare else (value.get('event'), check_record(value))
        if isinstance(event, dict):
            wrong = check_event(event, ('event',))
            rec.ok, faults = not wrong, faults + wrong
            rec.event, rec.type, rec.id = event, event.get('event_type'), digest_text(event.get('event_id'))
            rec.is_new = rec.id not in self.ids
        if not rec.is_bare and holds(COMMON + 'safe_integer', value.get('seq')):
            rec.seq = value['seq']
        for path, code in faults:
            self.find(code, rec, pointer(path))
        if rec.event is not None:
            self.identity(rec, event)
        if not rec.is_bare:
            self.chain(rec, value, first)
        if rec.event is not None:
            self.judge_event(rec, value, event)
        most, since = self.trust.require.get('checkpoint_max_records'), self.last_seal.rec.index + 1 if self.last_seal else 0
        rec.is_overdue = most is not None and rec.type != 'checkpoint' and rec.index - since >= most
        if rec.ok and rec.is_new:
            self.apply_rules(rec, event)
            if rec.type == 'checkpoint' and not rec.own_invalid:
                self.settle_slices(event['note'])

    def identity(self, rec, event):
        payload = canonical({name: event[name] for name in event if name not in ('event_id', 'payload_digest')})
        stated, named = event.get('payload_digest'), digest_text(event.get('ledger_id'))
        self.tell(is_digest(stated) and stated['b64'] != b64url(sha(payload)), 'PAYLOAD_DIGEST_MISMATCH', '/event/payload_digest')
        self.tell(rec.id and rec.id != digest(sha(b'northroot:event:v1\0', payload)), 'EVENT_ID_MISMATCH', '/event/event_id')
        if rec.is_bare:
            self.ledger_id = self.ledger_id or named
        elif rec.index == 0:
            self.ledger_id = rec.id
            return
        rec.is_unbound = bool(self.tell(named and self.ledger_id and named != self.ledger_id, 'LEDGER_MISMATCH', '/event/ledger_id', named))
        is_key, is_required = rec.type == 'key', self.genesis.get('signing', {}).get('binding') == 'required' and rec.type != 'genesis'
        if self.tell(not rec.is_bare and 'ledger_id' not in event and (is_key or is_required), 'LEDGER_UNBOUND', '/event/ledger_id',
                     'key' if is_key else ''):
            rec.is_unbound = True

    def chain(self, rec, value, first):
        if isinstance(rec.type, str):
            self.tell(rec.index == 0 and rec.type != 'genesis', 'GENESIS_MISSING', '/event/event_type')
            self.tell(rec.index > 0 and rec.type == 'genesis', 'GENESIS_MISPLACED', '/event/event_type')
        prev = value.get('prev')
        self.tell(is_digest(prev) and prev['b64'] != b64url(self.prev), 'PREV_MISMATCH', '/prev')
        is_gap = rec.seq not in (self.expected, self.other) or first is not None and rec.seq != first
        self.tell(rec.seq is not None and is_gap, 'SEQ_GAP', '/seq')

    def judge_event(self, rec, value, event):
        """Steps 6 to 10."""
        if rec.index == 0:
            self.first(rec, event)
        is_named = holds(COMMON + 'event_type', rec.type) and rec.type not in KNOWN and not rec.type.startswith('x.')
        self.tell(is_named, 'EVENT_TYPE_UNKNOWN', '/event/event_type', rec.type)
        self.tell(rec.ok and 'prev_event_id' in event and digest_text(event['prev_event_id']) not in self.ids, 'PREV_EVENT_NOT_FOUND',
                  '/event/prev_event_id')
        self.tell(not rec.is_new, 'EVENT_DUPLICATE', '/event/event_id')
        self.sign(rec, value, event)
        self.point_count += rec.type == 'checkpoint'
        if rec.ok and rec.is_new and not rec.is_bare and rec.type in ('checkpoint', 'attestation', 'key'):
            getattr(self, 'step_' + rec.type)(rec, event)

    def first(self, rec, event):
        origins = self.trust.origins
        self.tell(rec.is_bare and origins is not None, 'ORIGIN_MISMATCH', '')
        if rec.is_bare or not rec.ok or rec.type != 'genesis':
            return
        self.genesis, self.origin, self.clock, seen = event, event['origin'], instant(event['occurred_at']), set()
        self.tell(origins is not None and self.origin not in origins, 'ORIGIN_MISMATCH', '/event/origin')
        for index, entry in enumerate(event['keys']):
            key = Key(entry)
            fault = key.fault() or ('keyid' if key.id in seen else None)
            if not self.tell(fault, 'SCHEMA', f'/event/keys/{index}/{fault}'):
                seen.add(key.id)
                if not self.trust.is_given:
                    self.know(key)

    def know(self, key):
        self.keys[key.id] = key
        self.authority |= 'authority' in key.roles

    # Signatures

    def sign(self, rec, value, event):
        demanded, given = self.trust.require.get('event_signatures'), value.get('signatures')
        if rec.is_bare:
            self.signatures['missing'] += bool(self.tell(demanded == 'required', 'SIGNATURE_MISSING', '', ''))
            return
        is_authority = rec.ok and needs_authority(event)
        is_required = rec.type == 'key' or self.authority and is_authority or (
            demanded or self.genesis.get('signing', {}).get('events')) == 'required'
        if not isinstance(given, list) or len(given) > 16 or not all(isinstance(one, dict) and isinstance(one.get('keyid'), str)
                                                                     and isinstance(one.get('sig'), str) for one in given):
            return
        self.needs_authority |= is_authority and not self.authority
        self.signatures['missing'] += not given
        self.tell(is_required and not given, 'SIGNATURE_MISSING', '/signatures')
        message, seen, results, valid = pae(canonical(event)), set(), [], {}
        for index, one in enumerate(given):
            id_, place, outcome = one['keyid'], f'/signatures/{index}', 'copy'
            key, fault = self.keys.get(id_), None
            if (id_, one['sig']) not in seen:
                outcome = 'unverified' if key is None else 'valid'
                if key and self.tell(not key.signs(message, one['sig']), 'SIGNATURE_INVALID', place):
                    outcome = 'invalid'
                else:
                    fault = 'KEY_UNKNOWN' if key is None else self.entitlement(rec, event, key) if rec.ok else None
                    results += [(fault, place, None if key else id_)] if fault else []
                    outcome = 'invalid' if key and fault else outcome
                self.signatures[outcome] += 1
            if outcome == 'valid':
                valid[key.id], rec.signed = key, True
            seen.add((id_, one['sig']))
            rec.outcomes.append({'keyid': id_, 'outcome': outcome})
        rec.counting = list(valid.values()) if rec.ok else []
        for id_ in valid:
            self.signers[id_] = self.signers.get(id_, 0) + 1
        for code, place, cause in results:
            is_warning = rec.signed or code == 'KEY_UNKNOWN' and not is_required or code == 'KEY_NOT_FOR_ROLE' and any(
                other in ('KEY_NOT_FOR_PRINCIPAL', 'KEY_NOT_VALID_HERE') for other, _, _ in results)
            self.find(code, rec, place, cause, 'none' if is_warning else 'invalid')

    def entitlement(self, rec, event, key):
        rows = self.rows(event)
        if key.webauthn and rec.type != 'approval' or not any(role in key.roles for role, _ in rows):
            return 'KEY_NOT_FOR_ROLE'
        if not any(role in key.roles and all(map(key.covers, people)) for role, people in rows):
            return 'KEY_NOT_FOR_PRINCIPAL'
        return None if key.revoked is None and key.is_valid_at(self.moment(rec)) else 'KEY_NOT_VALID_HERE'

    def rows(self, event):
        """-> which roles may sign this, each with the principals that the key must cover."""
        kind, who = event['event_type'], event['principal_id']
        if kind not in ('authorization', 'approval', 'adjustment', 'revocation'):
            return [(role, [who]) for role in ROLES.get(kind, ('event',))]
        part, is_allow = event.get('authorization', event), event.get('decision') == 'allow'
        grant, is_grant = self.grants.get(digest_text(part.get('grant_event_id'))), part.get('kind') == 'grant'
        parents = [('event', [grant.principal])] if is_allow and is_grant and grant else []
        either, both = [('authority', [who]), ('event', [who])], [('authority', [who, grant.principal if grant else who])]
        if not self.authority:
            return either[1:] + parents
        if kind == 'authorization' and is_allow:
            return both + parents if is_grant else either if 'grant_event_id' in part else either[:1]
        if kind == 'revocation' and grant:
            period, owners = grant.withdrawn(), [above.principal for above in grant.chain]
            may = who in owners and (event['effect'] != 'resume' or who != grant.principal and not (period and period.by_authority))
            return both + either * may
        return both if needs_authority(event) and kind != 'approval' else either

    # Step 10

    def step_key(self, rec, event):
        entry = event['key']
        old = self.keys.get(entry['keyid'])
        if not rec.signed or rec.is_unbound:
            return
        if event['action'] == 'revoke':
            self.tell(old is None, 'KEY_UNKNOWN', '/event/key/keyid', cls='none')
            if old and old.revoked is None:
                old.revoked, old.revoked_seq = rec.index, rec.seq
        elif not old or not old.pinned:
            key = Key(entry, rec.counting)
            fault = key.fault()
            if not self.tell(fault or old, 'SCHEMA', '/event/key/' + (fault or 'keyid')):
                self.know(key)

    def step_checkpoint(self, rec, event):
        note, root, tip = parse_note(event['note']), event['root'], digest_text(event['chain_tip_event_id'])
        off, is_ours = event['tree_size'] - self.count, note and self.origin in (None, note.origin)
        wrong = self.tell(off, 'CHECKPOINT_SIZE_MISMATCH', '/event/tree_size', str(off))
        wrong = self.tell(not off and root['b64'] != b64url(self.roots[-1]), 'CHECKPOINT_ROOT_MISMATCH', '/event/root', '') or wrong
        wrong = self.tell(not off and tip != self.tip, 'CHECKPOINT_ROOT_MISMATCH', '/event/chain_tip_event_id') or wrong
        self.by_event[rec.id] = None
        if self.tell(note is None, 'CHECKPOINT_NOTE_MALFORMED', '/event/note'):
            return
        wrong = self.tell(not is_ours, 'ORIGIN_MISMATCH', '/event/note') or wrong
        wrong = self.tell(note.size != event['tree_size'], 'CHECKPOINT_SIZE_MISMATCH', '/event/note') or wrong
        wrong = self.tell(note.root != from_b64url(root['b64']), 'CHECKPOINT_ROOT_MISMATCH', '/event/note') or wrong
        point = self.by_event[rec.id] = Checkpoint(note, rec, right=not wrong)
        self.points.append(point)
        if is_ours:
            self.note_signatures(rec, point, note, self.moment(rec), 'checkpoint')
        self.seal(point)

    def step_attestation(self, rec, event):
        named, note = digest_text(event['checkpoint_event_id']), parse_note(event['note'])
        point = self.by_event.get(named)
        self.tell(named not in self.by_event, 'CHECKPOINT_MISSING', '/event/checkpoint_event_id')
        if self.tell(note is None or point and note.text != point.note.text, 'CHECKPOINT_NOTE_MALFORMED', '/event/note'):
            return
        rec.attests = point = point or Checkpoint(note, rec, right=False)
        if self.origin in (None, note.origin):
            self.note_signatures(rec, point, note, self.moment(rec), 'attestation')
        self.seal(point)

    def moment(self, rec):
        """The instant at which a record is judged."""
        at = instant(rec.event['occurred_at'])
        return at if self.clock is None else max(at, self.clock)

    def seal(self, point):
        if point.seals or not point.right or not point.log_keys:
            return
        point.seals = True
        if point.rec and (self.last_seal is None or point.rec.index > self.last_seal.rec.index):
            self.last_seal = point
        if point.rec and any('checkpoint' in key.roles for key in point.rec.counting):
            point.is_dated, self.clock = True, self.moment(point.rec)

    def candidates(self, origin, name, id_):
        """-> the keys that a line belongs to: (side, type, kind, raw, key of the ledger or None)."""
        out = []
        for key in self.keys.values():
            is_witness, is_quantum = 'witness' in key.roles, key.kind == 'ml-dsa-44'
            is_log = name == origin and (not is_quantum or 'checkpoint' in key.roles or not is_witness)
            sides = [('log', 6 if is_quantum else 1)] * is_log
            if is_witness and key.name == name and not (is_quantum and is_log):
                sides.append(('witness', 6 if is_quantum else 4))
            out += [(*side, key.kind, key.bytes, key) for side in sides if key.kind != 'p256' and not key.webauthn]
        known = {(one[0], one[3]) for one in out if key_id(name, one[1], one[3]) == id_}
        for side, entries in (('log', self.trust.logs if name == origin else ()), ('witness', self.trust.witnesses)):
            out += [(side, type_, 'ml-dsa-44' if type_ == 6 else 'ed25519', raw, None) for entry, type_, raw in entries
                    if entry == name and (side, raw) not in known]
        return [one for one in out if key_id(name, one[1], one[3]) == id_]

    def note_signatures(self, rec, point, note, at, mode):
        """Judges the lines of a note. mode: checkpoint, attestation or held."""
        trust, first, later, log_counts, is_held = self.trust, {}, {}, False, mode == 'held'
        revoked = {key.bytes for key in self.keys.values() if key.revoked is not None and (not is_held or key.revoked < note.size)}
        for name, id_, signature in dict.fromkeys(note.lines):
            found = self.candidates(note.origin, name, id_)
            self.unknown_lines += not found and not is_held
            checked = [(one, *note.holds(one[2], one[3], name, signature, one[1])) for one in found]
            right = [(*one, time) for one, is_right, time in checked if is_right]
            if found and not right:
                first['CHECKPOINT_SIGNATURE_INVALID', found[0][0], found[0][3]] = True
            for side, type_, kind, raw, key, time in right:
                is_log = side == 'log'
                by_policy = (trust.logs if is_log else trust.witnesses).get((name, type_, raw))
                is_timely = is_held or key and key.is_valid_at(at)
                faults = {'KEY_NOT_VALID_HERE': raw in revoked or not (key is None or by_policy or is_timely),
                          'KEY_NOT_FOR_ROLE': is_log and not by_policy and 'checkpoint' not in key.roles}
                later.update({(code, side, raw): True for code in faults if faults[code]})
                if any(faults.values()):
                    continue
                if is_log:
                    log_counts = True
                    if key and 'checkpoint' in key.roles and is_timely:
                        point.log_keys[key.id], point.signed[key.id, name, side] = key, False
                        point.pinned |= {key.id} if key.pinned else set()
                elif time and raw not in trust.log_bytes:
                    point.names |= {name} if key and key.pinned else set()
                    point.signed[keyid(kind, raw), name, side] = not by_policy and not key.pinned
                if by_policy and (is_log or time and raw not in trust.log_bytes):
                    point.by_policy.add(by_policy)
        place, where = (None, [point.path, 1, 0, 0]) if is_held else ('/event/note', rec)
        for code, _, _ in {**first, **later}:
            is_warning = mode == 'attestation' or code != 'CHECKPOINT_SIGNATURE_INVALID' and log_counts
            self.find(code, where, place, cls='none' if is_warning else 'invalid')
        if mode == 'checkpoint' and not log_counts and not first and not later:
            ids = [id_.hex() for name, id_, _ in note.lines if name == note.origin]
            cause = f'note {note.origin}+{ids[0]}' if ids else f'note none named {note.origin}'
            self.find('KEY_UNKNOWN', rec, place, cause, 'invalid' if self.requires_checkpoints() else 'none')

    def requires_checkpoints(self):
        """-> None, or how many records there must be before one is missed."""
        require = self.trust.require
        if require.keys() & {'checkpoint_quorum', 'witness_threshold', 'checkpoint_max_age_seconds'} or self.trust.names_log \
                or self.trust.quorum or require.get('checkpoints') == 'required':
            return 1
        return 2 if 'checkpoints' not in require and self.genesis.get('signing', {}).get('checkpoints') == 'required' else None

    def enough_logs(self, point):
        return len(point.pinned) >= self.trust.require.get('checkpoint_quorum', 0) and (
            not self.trust.names_log or 'log' in point.by_policy)

    def meets(self, point):
        return point.seals and point.size > 0 and self.enough_logs(point) \
            and len(point.names) >= self.trust.require.get('witness_threshold', 0) \
            and (self.trust.quorum is None or self.trust.meets_quorum(point.by_policy, self.trust.quorum))

    # The end

    def finish(self):
        self.is_at_end = True
        for rec, text in sorted(((rec, text) for text, recs in self.pending.items() for rec in recs), key=lambda pair: pair[0].index):
            self.find('AUTH_NOT_FOUND', rec, '/event/auth_event_id', 'late ' + text)
        # What is held counts for what follows, though its findings come later.
        found, self.findings = self.findings, []
        for path, note in self.held:
            self.hold(path, note)
        held, self.findings = self.findings, found
        cover = self.covers()[1]
        for rec in self.needing_cover():
            signers = 'signers ' + ' '.join(sorted(key.id for key in rec.counting))
            if rec.index >= cover and not rec.invalid:
                self.find('KEY_NOT_VALID_HERE', rec, '/signatures/0', signers)
        self.demands()
        self.findings += held
        self.succeeds()
        self.end_slices()
        self.findings.sort(key=lambda one: ORDER.index(one['severity' if one['class'] == 'none' else 'class']))

    def hold(self, path, note):
        point, is_ours = Checkpoint(note, None, path), self.origin in (None, note.origin)
        self.note_signatures(None, point, note, None, 'held')
        point.relation = 'other-origin' if not is_ours else 'truncated' if note.size > self.count else \
            'forked' if self.roots[note.size] != note.root else 'extends'
        point.right = point.relation == 'extends' and note.size > 0
        if point.relation != 'extends':
            code = 'ORIGIN_MISMATCH' if not is_ours else point.relation.upper()
            self.find(code, None if is_ours else [path, 1, 0, 0])
        self.seal(point)
        self.points.append(point)

    def covers(self):
        """-> how many records are covered by sealing checkpoints of keys that are not revoked, and by any."""
        tainted, size = {key.id for key in self.keys.values() if key.revoked is not None}, -1
        while size != len(tainted):
            size = len(tainted)
            tainted |= {key.id for key in self.keys.values() if key.adders and all(one.id in tainted for one in key.adders)}
        seals = [point for point in self.points if point.seals]
        clean = [point.size for point in seals if set(point.log_keys) - tainted]
        return max(clean, default=0), max((point.size for point in seals), default=0)

    def counted(self):
        """The records whose signatures need cover where their keys are revoked."""
        sealing = {point.rec for point in self.points if point.seals}
        return [rec for rec in self.recs if rec.counting and rec not in sealing and not rec.own_invalid
                and not (rec.type == 'key' and rec.event['action'] == 'revoke')]

    def needing_cover(self):
        return [rec for rec in self.counted() if all(key.revoked is not None for key in rec.counting)]

    def demands(self):
        require, end = self.trust.require, len(self.recs)
        order = sorted((point for point in self.points if point.seals), key=lambda point: (point.size, point.rec is None))
        last, meeting, least = order[-1] if order else None, [point for point in order if self.meets(point)], self.requires_checkpoints()
        if least and self.count >= least and not (last and self.meets(last)):
            code = 'CHECKPOINT_MISSING' if last is None or not self.enough_logs(last) else 'WITNESS_QUORUM'
            self.find(code, last and last.rec, cls='none' if meeting else 'invalid')
        age, own = require.get('checkpoint_max_age_seconds'), [point for point in meeting if point.rec][-1:]
        if age is not None and meeting and not (
                own and own[0].is_dated and abs(self.now - instant(own[0].rec.event['occurred_at'])) <= age * 10**9):
            self.find('CHECKPOINT_MISSING', meeting[-1].rec)
        base = meeting[-1] if meeting else None
        rest = [rec for rec in self.recs[base.size if base else 0:] if not base or rec is not base.rec and rec.attests is not base]
        if len(rest) > require.get('max_unsealed_records', end):
            self.find('TAIL_UNSEALED', base and base.rec, cls='invalid')
        elif last and self.unsealed(last):
            self.find('TAIL_UNSEALED', last.rec, cls='none')

    def unsealed(self, point):
        return self.count - point.size - (point.rec is not None)

    def succeeds(self):
        stated, other = self.genesis.get('continues'), self.predecessor
        if other is None:
            return
        if stated is None:
            self.find('LEDGER_MISMATCH', self.recs[0] if self.genesis else None, '/event/continues' if self.genesis else None)
            return
        size, code = stated['tree_size'], None
        if other.ledger_id != digest_text(stated['ledger_id']) or other.layout != 'records':
            code, place = 'LEDGER_MISMATCH', 'ledger_id'
        elif other.count < size or b64url(other.roots[size]) != stated['root']['b64']:
            code, place = ('TRUNCATED', 'tree_size') if other.count < size else ('FORKED', 'root')
        self.relation = {None: 'continues', 'LEDGER_MISMATCH': 'other-ledger'}.get(code) or code.lower()
        if code:
            self.find(code, self.recs[0], '/event/continues/' + place)

def needs_authority(event):
    """Whether, from authority on, a signature is required of a well-formed event."""
    kind, part = event['event_type'], event.get('authorization', {})
    return kind in ('approval', 'revocation') or kind == 'adjustment' and event['direction'] == 'credit' or \
        kind == 'authorization' and event['decision'] == 'allow' and (part['kind'] == 'grant' or 'grant_event_id' not in part)

def about(event):
    """What a finding says of its event."""
    part = event.get('authorization')
    action = part.get('action') if isinstance(part, dict) else None
    tool = event.get('tool_name', action.get('tool_name') if isinstance(action, dict) else None)
    out = {'principal_id': event.get('principal_id'), 'tool_name': tool}
    out = {name: value for name, value in out.items() if holds(COMMON + name, value)}
    kind = event.get('event_type')
    return {**out, 'event_type': kind} if kind in ('execution', 'authorization') else out

def judge(name, files, policy=None, witness=None, checkpoints=(), parents=(), predecessor=None, now=None, trace=None):
    """-> a Verifier that has read a ledger. All but names and the time is bytes; a ledger is a name and its [(name, bytes, first seq of a segment)]."""
    trust, held, at = Trust(policy, witness), [], instant(now) if now else time.time_ns()
    for path, data in checkpoints:
        head, mark, tail = data.decode(errors='replace').rpartition('\n\n')
        # Repeated lines are ignored.
        note = parse_note(head + mark + ''.join(dict.fromkeys(tail.splitlines(True))))
        if note is None:
            raise Refused('a held checkpoint is malformed: ' + path)
        held.append((path, note))
    above = [Verifier(Trust(policy, witness), now=at).run(*parent) for parent in parents]
    before = Verifier(now=at).run(*predecessor) if predecessor else None
    return Verifier(trust, held, above, before, at, trace).run(name, files)
