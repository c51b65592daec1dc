"""An independent verifier of northroot ledgers, written from docs/spec and schemas alone. README.md says what it leaves out."""
import json, re, time
from canonical import canonical, once, pointer, read, utf16
from keys import NAME, Key, Tree, b64url, digest, from_b64, key_id, keyid, pae, parse_note, sha
from rules import Rules
from shape import COMMON, KNOWN, check, check_event, check_record, digest_text, holds, instant, timestamp

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
    seq = id = event = type = attests = None
    ok = is_bare = signed = denied = is_overdue = is_new = is_unbound = invalid = own_invalid = violation = False
    def __init__(self, where, index):
        self.where, self.index, self.place, self.counting, self.under, self.outcomes = where, index, index, [], [], []
    def counts(self):
        """Whether it is valid at its own place."""
        return not self.own_invalid
    def verdict(self):
        return 'invalid' if self.invalid else 'violation' if self.violation else 'denied' if self.denied else 'ok'

class Checkpoint:
    def __init__(self, note, rec, path=None, right=True):
        self.note, self.rec, self.path, self.size, self.right, self.seals, self.is_dated = note, rec, path, note.size, right, False, False
        self.log_keys, self.pinned, self.names, self.by_policy, self.signed = {}, set(), set(), set(), {}

class Trust:
    """A trust policy, and a witness policy."""
    def __init__(self, policy=None, witness=None):
        self.keys, self.is_given, self.logs, self.witnesses, self.groups = [], policy is not None, {}, {}, {}
        self.quorum, self.names_log, self.unknown, value = None, False, 0, {}
        if policy is not None:
            try:
                value = json.loads(policy.decode(), object_pairs_hook=once)
            except ValueError as error:
                raise Refused('the policy is not JSON') from error
            if check('trust-policy.json', value) or len(policy) > 1 << 20: raise Refused('the policy is malformed')
        self.origins, self.require = value.get('origins'), value.get('require', {})
        for key in [Key(entry, pinned=True) for entry in value.get('keys', ())]:
            is_wrong = 'witness' in key.roles and (key.kind == 'p256' or not NAME.fullmatch(key.name or ''))
            if key.fault() or is_wrong or any(key.id == other.id for other in self.keys):
                raise Refused('the policy has a wrong key: ' + key.id)
            self.keys.append(key)
        logs = [key for key in self.keys if 'checkpoint' in key.roles]
        names = {key.name for key in self.keys if 'witness' in key.roles and key not in logs}
        if self.require.get('checkpoint_quorum', 0) > sum(key.kind != 'p256' for key in logs) \
                or self.require.get('witness_threshold', 0) > len(names):
            raise Refused('the policy cannot be met')
        for line in witness.decode().split('\n')[:-1] if witness is not None else ():
            self._read_witness(*[*line.split(), '', '', ''][:3], line.split()[3:])
        self.log_bytes = {key.bytes for key in logs} | {raw for _, _, raw in self.logs}
    def _read_witness(self, kind, first, second, rest):
        if kind in ('log', 'witness'):
            self.names_log |= kind == 'log'
            name, hex_, text = (first if kind == 'log' else second).split('+', 2)
            raw = from_b64(text)
            if raw[0] not in ((1, 6) if kind == 'log' else (4, 6)):
                self.unknown, self.groups[first] = self.unknown + 1, (1, [])
            elif key_id(name, raw[0], raw[1:]).hex() != hex_:
                raise Refused('the witness policy has a wrong key')
            else:
                (self.logs if kind == 'log' else self.witnesses)[name, raw[0], raw[1:]] = kind if kind == 'log' else first
        elif kind == 'group':
            self.groups[first] = {'any': 1, 'all': len(rest)}.get(second) or int(second), rest
        elif kind == 'quorum':
            self.quorum = first if first != 'none' else None
    def meets_quorum(self, signed, name):
        need, members = self.groups.get(name, (0, ()))
        return sum(self.meets_quorum(signed, member) for member in members) >= need if name in self.groups else name in signed

class Verifier(Rules):
    def __init__(self, trust, held=(), parents=(), predecessor=None, now=None, trace=None):
        self.trust, self.held, self.predecessor, self.now, self.trace, self.sums = trust, held, predecessor, now, trace, {}
        self.findings, self.folds, self.ids, self.pending, self.types, self.points, self.by_event = [], {}, {}, {}, {}, [], {}
        self.count = self.bytes = self.expected = self.other = self.unknown_lines = self.point_count = 0
        self.tree, self.prev, self.roots, self.recs, self.signers, self.relation = Tree(), sha(), [sha()], [], {}, 'other-ledger'
        self.layout = self.ledger_id = self.tip = self.origin = self.clock = self.last_seal = None
        self.parents, self.keys = {parent.ledger_id: parent for parent in parents}, {key.id: key for key in trust.keys}
        self.genesis, self.signing, self.is_at_end = {}, {}, False
        self.authority = any('authority' in key.roles for key in trust.keys)
        self.signatures = {'valid': 0, 'invalid': 0, 'unverified': 0, 'missing': 0}
        self.begin_rules()
    def find(self, code, rec, place=None, cause=None, cls=None, at=(), related=None):
        """Tells of a finding at a record, at a location, or (None) at the end. A place is a pointer, or begins in the event."""
        cls, is_record = cls or CLASSES.get(code, 'invalid'), isinstance(rec, Record)
        severity = 'error' if cls != 'none' else 'info' if code in INFOS else 'warning'
        where = [*((rec.where if is_record else rec or self.end)[:4 - len(at)]), *at]
        place = '/event/' + place if place and place[0] != '/' else place
        if is_record:
            rec.invalid |= cls == 'invalid'
            rec.own_invalid |= cls == 'invalid' and not self.is_at_end and not (rec.is_overdue and code == 'CHECKPOINT_MISSING')
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
        finding.update(about(rec.event) if is_record and rec.event is not None and not self.is_at_end else {})
        if related is not None:
            finding['related'] = [{'file': related.where[0], 'line': related.where[1], 'seq': related.seq, 'event_id': related.id}]
        self.findings.append(finding)
        if folds and len(self.folds) < 4096: self.folds[code, severity, cause] = finding
    def run(self, name, files):
        self.path, self.end = name, [name, 1, 0, 0]
        for file, data, first in files:
            lines, offset = data.split(b'\n'), 0
            self.bytes += len(data)
            for number, line in enumerate(lines[:-1], 1):
                self.rec = Record([file, number, offset, len(line)], self.count)
                offset += len(line) + 1
                if not self.tell(not line, 'LINE_BLANK'): self.line(self.rec, line, first if number == 1 else None)
            self.end = [file, len(lines), offset, 0]
            if lines[-1]: self.find('LINE_TORN', [*self.end[:3], len(lines[-1])])
        self.finish()
        return self
    def line(self, rec, line, first):
        clock = self.clock
        self.recs.append(rec)
        if not self.tell(len(line) > 65535, 'LINE_TOO_LONG'): self.judge(rec, line, first)
        self.tell(rec.is_overdue, 'CHECKPOINT_MISSING', cause=str(self.last_seal and self.last_seal.rec.id))
        self.prev, self.count = sha(b'\0', line), self.count + 1
        self.tree.add(self.prev)
        self.roots.append(self.tree.root())
        self.other = self.expected + 1 if rec.seq == self.expected else self.other + 1
        self.expected = (self.expected if rec.seq is None else rec.seq) + 1
        if self.trace is not None: self.trace.append(self.step(rec, clock))
        if isinstance(rec.type, str): self.types[rec.type] = self.types.get(rec.type, 0) + 1
        if rec.id is not None:
            self.tip = rec.id
            self.ids.setdefault(rec.id, rec)
            code = 'AUTH_AFTER_EXECUTION' if rec.type == 'authorization' else 'AUTH_NOT_AN_AUTHORIZATION'
            for waiting in self.pending.pop(rec.id, ()): self.find(code, waiting, 'auth_event_id', 'late ' + rec.id)
    def step(self, rec, clock):
        """What holds after a record, as the conformance protocol has it."""
        changed = []
        for grant, unit, one in [(grant, *one) for grant in self.grants.values() for one in grant.accounts.items()]:
            sums = {'used': str(one.used), 'reserved': str(one.reserved), 'estimated': str(min(one.estimated, one.used))}
            changed += [{'grant': grant.id, 'unit': unit, **sums}] if self.sums.get((grant, unit)) != sums else []
            self.sums[grant, unit] = sums
        used = [one.rec.id for one in self.approvals.values() if rec.id and one.used_by == rec.id]
        return {'seq': rec.index, 'clock': None if clock is None else timestamp(clock), 'verdict': rec.verdict(), 'accounts': changed,
                'signatures': rec.outcomes, 'root': digest(self.roots[-1]), 'approvals': used}
    def judge(self, rec, line, first):
        """Steps 1 to 12."""
        value, fault = read(line)
        if fault: self.find(fault[0], rec, fault[2], at=(rec.where[2] + fault[1], int(fault[1] < len(line))))
        if fault or self.tell(not isinstance(value, dict), 'SCHEMA', ''): return
        self.layout = self.layout or ('bare' if 'event_type' in value and 'event' not in value else 'records')
        rec.is_bare = self.layout == 'bare'
        event, faults = (value, []) if rec.is_bare else (value.get('event'), check_record(value))
        if isinstance(event, dict):
            wrong = check_event(event, ('event',))
            rec.ok, faults, rec.event, rec.type = not wrong, faults + wrong, event, event.get('event_type')
            rec.id = digest_text(event.get('event_id'))
            rec.is_new = rec.id not in self.ids
        if not rec.is_bare and holds(COMMON + 'safe_integer', value.get('seq')): rec.seq = rec.place = value['seq']
        for path, code in faults: self.find(code, rec, pointer(path))
        if rec.event is not None: self.identity(rec, event)
        if not rec.is_bare: self.chain(rec, value, first)
        if rec.event is not None: self.judge_event(rec, value, event)
        most, since = self.trust.require.get('checkpoint_max_records'), self.last_seal.rec.index + 1 if self.last_seal else 0
        rec.is_overdue = most is not None and rec.type != 'checkpoint' and rec.index - since >= most
        if rec.ok and rec.is_new:
            self.apply_rules(rec, event)
            if rec.type == 'checkpoint' and not rec.own_invalid: self.settle_slices(event['note'])
    def identity(self, rec, event):
        payload, tell = canonical({name: event[name] for name in event if name not in ('event_id', 'payload_digest')}), self.tell
        stated, named = event.get('payload_digest'), digest_text(event.get('ledger_id'))
        tell(digest_text(stated) not in (None, digest(sha(payload))), 'PAYLOAD_DIGEST_MISMATCH', 'payload_digest')
        tell(rec.id and rec.id != digest(sha(b'northroot:event:v1\0', payload)), 'EVENT_ID_MISMATCH', 'event_id')
        if rec.is_bare or rec.index == 0: self.ledger_id = self.ledger_id or (named if rec.is_bare else rec.id)
        if rec.is_bare or rec.index:
            is_key, is_required = rec.type == 'key', self.signing.get('binding') == 'required' and rec.type != 'genesis'
            rec.is_unbound = tell(named and self.ledger_id and named != self.ledger_id, 'LEDGER_MISMATCH', 'ledger_id', named)
            is_missing = not rec.is_bare and 'ledger_id' not in event and (is_key or is_required)
            rec.is_unbound |= tell(is_missing, 'LEDGER_UNBOUND', 'ledger_id', 'key' if is_key else '')
    def chain(self, rec, value, first):
        is_genesis = rec.type == 'genesis'
        self.tell(isinstance(rec.type, str) and rec.index == 0 and not is_genesis, 'GENESIS_MISSING', 'event_type')
        self.tell(rec.index > 0 and is_genesis, 'GENESIS_MISPLACED', 'event_type')
        self.tell(digest_text(value.get('prev')) not in (None, digest(self.prev)), 'PREV_MISMATCH', '/prev')
        is_gap = rec.seq not in (self.expected, self.other) or first is not None and rec.seq != first
        self.tell(rec.seq is not None and is_gap, 'SEQ_GAP', '/seq')
    def judge_event(self, rec, value, event):
        """Steps 6 to 10."""
        if rec.index == 0: self.first(rec, event)
        is_named = holds(COMMON + 'event_type', rec.type) and rec.type not in KNOWN and not rec.type.startswith('x.')
        self.tell(is_named, 'EVENT_TYPE_UNKNOWN', 'event_type', rec.type)
        is_lost = rec.ok and 'prev_event_id' in event and digest_text(event['prev_event_id']) not in self.ids
        self.tell(is_lost, 'PREV_EVENT_NOT_FOUND', 'prev_event_id')
        self.tell(not rec.is_new, 'EVENT_DUPLICATE', 'event_id')
        self.sign(rec, value, event)
        self.point_count += rec.type == 'checkpoint'
        if rec.ok and rec.is_new and not rec.is_bare and rec.type in ('checkpoint', 'attestation', 'key'):
            getattr(self, 'step_' + rec.type)(rec, event)
    def first(self, rec, event):
        origins = self.trust.origins
        self.tell(rec.is_bare and origins is not None, 'ORIGIN_MISMATCH', '')
        if not rec.is_bare and rec.ok and rec.type == 'genesis':
            self.genesis, self.signing, self.origin, self.clock = event, event['signing'], event['origin'], self.moment(rec)
            self.tell(origins is not None and self.origin not in origins, 'ORIGIN_MISMATCH', 'origin')
            seen = set()
            for index, key in enumerate(map(Key, event['keys'])):
                fault = key.fault() or ('keyid' if key.id in seen else None)
                if not self.tell(fault, 'SCHEMA', f'keys/{index}/{fault}'):
                    seen.add(key.id)
                    self.know(key, not self.trust.is_given)
    def know(self, key, is_so=True):
        if is_so:
            self.keys[key.id] = key
            self.authority |= 'authority' in key.roles
    def sign(self, rec, value, event):
        demanded, given = self.trust.require.get('event_signatures'), value.get('signatures')
        is_authority = rec.ok and needs_authority(event)
        is_required = rec.type == 'key' or self.authority and is_authority or (demanded or self.signing.get('events')) == 'required'
        if rec.is_bare: self.signatures['missing'] += self.tell(demanded == 'required', 'SIGNATURE_MISSING', '', '')
        if rec.is_bare or not isinstance(given, list) or len(given) > 16 or not all(
                isinstance(one, dict) and isinstance(one.get('keyid'), str) and isinstance(one.get('sig'), str) for one in given):
            return
        self.needs_authority |= is_authority and not self.authority
        self.signatures['missing'] += not given
        self.tell(is_required and not given, 'SIGNATURE_MISSING', '/signatures')
        message, seen, results, valid = pae(canonical(event)), set(), [], {}
        for index, (id_, text) in enumerate((one['keyid'], one['sig']) for one in given):
            key, fault, place, outcome = self.keys.get(id_), None, f'/signatures/{index}', 'copy'
            if (id_, text) not in seen:
                is_wrong = self.tell(key and not key.signs(message, text), 'SIGNATURE_INVALID', place)
                fault = None if is_wrong else 'KEY_UNKNOWN' if not key else self.entitlement(rec, event, key) if rec.ok else None
                results += [(fault, place, None if key else id_)] if fault else []
                outcome = 'unverified' if key is None else 'invalid' if is_wrong or fault else 'valid'
                self.signatures[outcome] += 1
                valid.update({id_: key} if outcome == 'valid' else {})
            seen.add((id_, text))
            rec.outcomes.append({'keyid': id_, 'outcome': outcome})
        rec.signed, rec.counting = bool(valid), list(valid.values()) if rec.ok else []
        for id_ in valid: self.signers[id_] = self.signers.get(id_, 0) + 1
        for code, place, cause in results:
            is_warning = rec.signed or code == 'KEY_UNKNOWN' and not is_required or code == 'KEY_NOT_FOR_ROLE' and any(
                other in ('KEY_NOT_FOR_PRINCIPAL', 'KEY_NOT_VALID_HERE') for other, _, _ in results)
            self.find(code, rec, place, cause, 'none' if is_warning else 'invalid')
    def entitlement(self, rec, event, key):
        people = [people for role, people in self.rows(event) if role in key.roles]
        if key.webauthn and rec.type != 'approval' or not people: return 'KEY_NOT_FOR_ROLE'
        if not any(all(map(key.covers, some)) for some in people): return 'KEY_NOT_FOR_PRINCIPAL'
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
        if not self.authority: return either[1:] + parents
        if is_allow: return both + parents if is_grant else either if 'grant_event_id' in part else either[:1]
        if kind == 'revocation' and grant:
            period, owners = grant.withdrawn(), [above.principal for above in grant.chain]
            is_kept = period and period.by_authority and not period.is_final
            may = who in owners and (event['effect'] != 'resume' or who != grant.principal and not is_kept)
            return both + either * may
        return both if needs_authority(event) and kind != 'approval' else either
    def step_key(self, rec, event):
        old, is_add = self.keys.get(event['key']['keyid']), event['action'] == 'add'
        if rec.signed and not rec.is_unbound and not is_add:
            self.tell(not old, 'KEY_UNKNOWN', 'key/keyid', cls='none')
            if old and old.revoked is None: old.revoked, old.revoked_seq = rec.index, rec.seq
        elif rec.signed and not rec.is_unbound and not (old and old.pinned):
            key = Key(event['key'], rec.counting)
            fault = key.fault()
            self.know(key, not self.tell(fault or old, 'SCHEMA', 'key/' + (fault or 'keyid')))
    def step_checkpoint(self, rec, event):
        note, root, tip, tell = parse_note(event['note']), event['root']['b64'], digest_text(event['chain_tip_event_id']), self.tell
        off, self.by_event[rec.id] = event['tree_size'] - self.count, None
        wrong = tell(off, 'CHECKPOINT_SIZE_MISMATCH', 'tree_size', str(off))
        wrong |= tell(not off and root != b64url(self.roots[-1]), 'CHECKPOINT_ROOT_MISMATCH', 'root', '')
        wrong |= tell(not off and tip != self.tip, 'CHECKPOINT_ROOT_MISMATCH', 'chain_tip_event_id')
        if not tell(note is None, 'CHECKPOINT_NOTE_MALFORMED', 'note'):
            wrong |= tell(self.origin not in (None, note.origin), 'ORIGIN_MISMATCH', 'note')
            wrong |= tell(note.size != event['tree_size'], 'CHECKPOINT_SIZE_MISMATCH', 'note')
            wrong |= tell(b64url(note.root) != root, 'CHECKPOINT_ROOT_MISMATCH', 'note')
            point = self.by_event[rec.id] = Checkpoint(note, rec, right=not wrong)
            self.points.append(point)
            self.note_signatures(rec, point, note, 'checkpoint')
    def step_attestation(self, rec, event):
        named, note = digest_text(event['checkpoint_event_id']), parse_note(event['note'])
        point = self.by_event.get(named)
        self.tell(named not in self.by_event, 'CHECKPOINT_MISSING', 'checkpoint_event_id')
        if not self.tell(note is None or point and note.text != point.note.text, 'CHECKPOINT_NOTE_MALFORMED', 'note'):
            rec.attests = point or Checkpoint(note, rec, right=False)
            self.note_signatures(rec, rec.attests, note, 'attestation')
    def moment(self, rec):
        """The instant at which a record is judged."""
        at = instant(rec.event['occurred_at'])
        return at if self.clock is None else max(at, self.clock)
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
    def note_signatures(self, rec, point, note, mode):
        """Judges the lines of a note, unless it is another log's; then seals what it may. mode: checkpoint, attestation or held."""
        trust, first, later, log_counts, is_held = self.trust, {}, {}, False, mode == 'held'
        at, is_ours = None if is_held else self.moment(rec), is_held or self.origin in (None, note.origin)
        revoked = {key.bytes for key in self.keys.values() if key.revoked is not None and (not is_held or key.revoked < note.size)}
        for name, id_, signature in dict.fromkeys(note.lines if is_ours else ()):
            found = self.candidates(note.origin, name, id_)
            self.unknown_lines += not found and not is_held
            checked = [(one, *note.holds(one[2], one[3], name, signature, one[1])) for one in found]
            right = [(*one, time) for one, is_right, time in checked if is_right]
            first.update({('CHECKPOINT_SIGNATURE_INVALID', *found[0][::3]): True} if found and not right else {})
            for side, type_, kind, raw, key, time in right:
                is_log, is_timely = side == 'log', is_held or key and key.is_valid_at(at)
                by_policy = (trust.logs if is_log else trust.witnesses).get((name, type_, raw))
                is_sealing = is_log and key and 'checkpoint' in key.roles
                faults = {'KEY_NOT_VALID_HERE': raw in revoked or not (key is None or by_policy or is_timely),
                          'KEY_NOT_FOR_ROLE': is_log and not by_policy and not is_sealing}
                later.update({(code, side, raw): True for code in faults if faults[code]})
                if any(faults.values()) or not is_log and (not time or raw in trust.log_bytes): continue
                log_counts |= is_log
                point.by_policy |= {by_policy} if by_policy else set()
                if is_sealing and is_timely:
                    point.log_keys[key.id], point.signed[key.id, name, side] = key, False
                    point.pinned |= {key.id} if key.pinned else set()
                elif not is_log:
                    point.names |= {name} if key and key.pinned else set()
                    point.signed[keyid(kind, raw), name, side] = not by_policy and not key.pinned
        for code, _, _ in {**first, **later}:
            is_warning = mode == 'attestation' or code != 'CHECKPOINT_SIGNATURE_INVALID' and log_counts
            self.find(code, rec or [point.path, 1, 0, 0], None if is_held else 'note', cls='none' if is_warning else 'invalid')
        if mode == 'checkpoint' and is_ours and not (log_counts or first or later):
            ids = [id_.hex() for name, id_, _ in note.lines if name == note.origin]
            cause = f'note {note.origin}+{ids[0]}' if ids else f'note none named {note.origin}'
            self.find('KEY_UNKNOWN', rec, 'note', cause, 'invalid' if self.requires_checkpoints() else 'none')
        if point.right and point.log_keys and not point.seals:
            point.seals, own = True, point.rec
            if own and (self.last_seal is None or own.index > self.last_seal.rec.index): self.last_seal = point
            if own and any('checkpoint' in key.roles for key in own.counting):
                point.is_dated, self.clock = True, self.moment(own)
    def requires_checkpoints(self):
        """-> None, or how many records there must be before one is missed."""
        require, demands = self.trust.require, {'checkpoint_quorum', 'witness_threshold', 'checkpoint_max_age_seconds'}
        if require.keys() & demands or self.trust.names_log or self.trust.quorum or require.get('checkpoints') == 'required':
            return 1
        return 2 if 'checkpoints' not in require and self.signing.get('checkpoints') == 'required' else None
    def enough_logs(self, point):
        has_log = not self.trust.names_log or 'log' in point.by_policy
        return has_log and len(point.pinned) >= self.trust.require.get('checkpoint_quorum', 0)
    def meets(self, point):
        has_names = len(point.names) >= self.trust.require.get('witness_threshold', 0)
        has_quorum = self.trust.quorum is None or self.trust.meets_quorum(point.by_policy, self.trust.quorum)
        return point.seals and point.size > 0 and self.enough_logs(point) and has_names and has_quorum
    def finish(self):
        self.is_at_end = True
        for rec, text in sorted(((rec, text) for text, recs in self.pending.items() for rec in recs), key=lambda pair: pair[0].index):
            self.find('AUTH_NOT_FOUND', rec, 'auth_event_id', 'late ' + text)
        # What is held counts for what follows, though its findings come later.
        found, self.findings = self.findings, []
        for path, note in self.held: self.hold(path, note)
        held, self.findings, cover = self.findings, found, self.covers()[1]
        for rec in self.needing_cover():
            if rec.index >= cover and not rec.invalid:
                signers = 'signers ' + ' '.join(sorted(key.id for key in rec.counting))
                self.find('KEY_NOT_VALID_HERE', rec, '/signatures/0', signers)
        self.demands()
        self.findings += held
        if self.predecessor: self.succeeds(self.genesis.get('continues'), self.predecessor)
        self.end_slices()
        self.findings.sort(key=lambda one: ORDER.index(one['severity' if one['class'] == 'none' else 'class']))
    def hold(self, path, note):
        is_ours, is_there = self.origin in (None, note.origin), note.size <= self.count
        relation = 'other-origin' if not is_ours else 'truncated' if not is_there else \
            'extends' if self.roots[note.size] == note.root else 'forked'
        point = Checkpoint(note, None, path, relation == 'extends' and note.size > 0)
        point.relation = relation
        self.note_signatures(None, point, note, 'held')
        if relation != 'extends':
            self.find(relation.upper() if is_ours else 'ORIGIN_MISMATCH', None if is_ours else [path, 1, 0, 0])
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
        return [rec for rec in self.recs if rec.counting and rec not in sealing and not rec.own_invalid and not rec.is_overdue
                and not (rec.type == 'key' and rec.event['action'] == 'revoke')]
    def needing_cover(self):
        return [rec for rec in self.counted() if all(key.revoked is not None for key in rec.counting)]
    def demands(self):
        require, order = self.trust.require, sorted(
            (point for point in self.points if point.seals), key=lambda point: (point.size, point.rec is None))
        last, meeting, least = order[-1] if order else None, [point for point in order if self.meets(point)], self.requires_checkpoints()
        if least and self.count >= least and not (last and self.meets(last)):
            code = 'CHECKPOINT_MISSING' if last is None or not self.enough_logs(last) else 'WITNESS_QUORUM'
            self.find(code, last and last.rec, cls='none' if meeting else 'invalid')
        age, own = require.get('checkpoint_max_age_seconds'), [point for point in meeting if point.rec][-1:]
        is_recent = own and own[0].is_dated and abs(self.now - instant(own[0].rec.event['occurred_at'])) <= (age or 0) * 10**9
        if age is not None and meeting and not is_recent: self.find('CHECKPOINT_MISSING', meeting[-1].rec)
        base = meeting[-1] if meeting else None
        rest = [rec for rec in self.recs[base.size if base else 0:] if not base or rec is not base.rec and rec.attests is not base]
        if len(rest) > require.get('max_unsealed_records', self.count):
            self.find('TAIL_UNSEALED', base and base.rec, cls='invalid')
        elif last and self.unsealed(last):
            self.find('TAIL_UNSEALED', last.rec, cls='none')
    def unsealed(self, point):
        return self.count - point.size - (point.rec is not None)
    def succeeds(self, stated, other):
        self.rec, size, code = self.recs[0] if self.genesis else None, stated['tree_size'] if stated else 0, None
        if stated is None:
            self.tell(True, 'LEDGER_MISMATCH', 'continues' if self.genesis else None)
            return
        if other.ledger_id != digest_text(stated['ledger_id']) or other.layout != 'records':
            code, place = 'LEDGER_MISMATCH', 'ledger_id'
        elif other.count < size or b64url(other.roots[size]) != stated['root']['b64']:
            code, place = ('TRUNCATED', 'tree_size') if other.count < size else ('FORKED', 'root')
        self.relation = {None: 'continues', 'LEDGER_MISMATCH': 'other-ledger'}.get(code) or code.lower()
        if code: self.tell(True, code, 'continues/' + place)

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
    """-> a Verifier that has read a ledger, which is a name and its [(name, bytes, first seq of a segment)]."""
    trust, held, at = Trust(policy, witness), [], instant(now) if now else time.time_ns()
    for path, data in checkpoints:
        head, mark, tail = data.decode(errors='replace').rpartition('\n\n')
        # Repeated lines are ignored.
        note = parse_note(head + mark + ''.join(dict.fromkeys(tail.splitlines(True))))
        if note is None: raise Refused('a held checkpoint is malformed: ' + path)
        held.append((path, note))
    above = [Verifier(Trust(policy, witness), now=at).run(*parent) for parent in parents]
    before = Verifier(Trust(), now=at).run(*predecessor) if predecessor else None
    return Verifier(trust, held, above, before, at, trace).run(name, files)
