"""An independent verifier of northroot ledgers, written from docs/spec and schemas alone. README.md says what it leaves out."""

import json
import os
import re
import sys
import time
import traceback
from keys import NAME, Key, Tree, b64url, from_b64, from_b64url, key_id, keyid, pae, parse_note, sha
from canonical import canonical, pointer, read
from report import covers, needing_cover, report
from rules import Rules
from shape import KNOWN, check, check_event, check_record, digest_text, holds, instant, is_digest, timestamp

VIOLATIONS = set('''ALLOW_WITH_FAILED_CHECK HYGIENE_NOT_OK APPROVAL_REUSED PRINCIPAL_MISMATCH AUTHORIZATION_BEFORE_GRANT
DELEGATION_EXCEEDED TOOL_NOT_ALLOWED GRANT_NOT_YET_VALID GRANT_EXPIRED ACTION_CAP_EXCEEDED RESERVATION_OVER_CAP
APPROVAL_EXCEEDED APPROVAL_MISSING GRANT_REVOKED REQUEST_REPEATED SLICE_REUSED SLICE_MISMATCH SLICE_EXCEEDED
AUTHORIZATION_REUSED EXECUTION_UNDER_DENY EXECUTION_BEFORE_AUTHORIZATION ACTION_EXPIRED RESERVATION_EXCEEDED
METER_CAP_EXCEEDED RATE_LIMIT_EXCEEDED CONCURRENCY_EXCEEDED OUTPUT_MODE_EXCEEDED SELF_CREDIT ADJUSTMENT_EXCEEDED
GRANT_DENIED'''.split())
WARNINGS = set('''HYGIENE_LOSSY QUANTITY_LOSSY INTENT_UNLINKED RESOURCE_NOT_GRANTED TIME_INCONSISTENT RELEASE_OF_STARTED
METER_UNREPORTED'''.split())
INFOS = {'EVENT_TYPE_UNKNOWN', 'TIME_REGRESSION', 'METER_UNCAPPED'}
ROLES = {
    'genesis': ('admin', 'checkpoint', 'event'), 'checkpoint': ('checkpoint', 'event'),
    'attestation': ('checkpoint', 'event'), 'key': ('admin',),
}
SEGMENT = re.compile(r'[0-9]{20}\.jsonl\Z')


class Refused(Exception):
    """What a verifier cannot begin with: status 2."""


class Record:
    def __init__(self, file, line, offset, length, index):
        self.file, self.line, self.offset, self.length, self.index = file, line, offset, length, index
        self.seq = self.id = self.event = self.type = None
        self.ok = self.is_bare = self.signed = self.denied = self.is_overdue = self.is_new = False
        self.invalid = self.own_invalid = self.violation = False
        self.counting, self.under, self.outcomes = [], [], []

    @property
    def place(self):
        return self.index if self.seq is None else self.seq

    def verdict(self):
        return 'invalid' if self.invalid else 'violation' if self.violation else 'denied' if self.denied else 'ok'


class Checkpoint:
    def __init__(self, note, rec, path=None):
        self.note, self.rec, self.path, self.size = note, rec, path, note.size
        self.right, self.seals, self.is_dated = True, False, False
        self.log_keys, self.pinned, self.names, self.by_policy, self.signed = {}, set(), set(), set(), {}


class Trust:
    """A trust policy, and a witness policy."""

    def __init__(self, policy=None, witness=None):
        self.keys, self.origins, self.require, self.is_given = [], None, {}, policy is not None
        self.logs, self.witnesses, self.quorum, self.names_log, self.unknown = [], {}, None, False, 0
        if policy is not None:
            self._read(policy)
        if witness is not None:
            self._read_witness(witness)
        self.log_bytes = {key.bytes for key in self.keys if 'checkpoint' in key.roles} | {raw for _, _, raw in self.logs}

    def _read(self, data):
        if len(data) > 1 << 20:
            raise Refused('the policy is too large')
        try:
            value = json.loads(data.decode(), object_pairs_hook=_once)
        except ValueError as error:
            raise Refused(f'the policy is not JSON: {error}') from error
        faults = check('trust-policy.json', value)
        if faults:
            raise Refused('the policy is malformed at ' + pointer(faults[0][0]))
        self.origins, self.require = value.get('origins'), value.get('require', {})
        for index, entry in enumerate(value['keys']):
            key = Key(entry)
            fault = key.fault() or ('keyid' if any(key.id == other.id for other in self.keys) else None)
            if not fault and 'witness' in key.roles:
                fault = 'public_key' if key.kind == 'p256' else None if key.name and NAME.match(key.name) else 'name'
            if fault:
                raise Refused(f'the policy is malformed at /keys/{index}/{fault}')
            key.pinned = True
            self.keys.append(key)
        logs = [key for key in self.keys if 'checkpoint' in key.roles and key.kind != 'p256']
        names = {key.name for key in self.keys if 'witness' in key.roles and key not in logs}
        for name, most in (('checkpoint_quorum', logs), ('witness_threshold', names)):
            if self.require.get(name, 0) > len(most):
                raise Refused('the policy cannot be met at /require/' + name)

    def _read_witness(self, data):
        groups = {}
        for line in data.decode().split('\n')[:-1]:
            words = line.split()
            if not words or words[0].startswith('#'):
                continue
            if words[0] in ('log', 'witness'):
                name, hex_, text = words[-1 if words[0] == 'log' and len(words) == 2 else 1 if words[0] == 'log' else 2].split('+', 2)
                raw = from_b64(text)
                if raw[0] not in ((1, 6) if words[0] == 'log' else (4, 6)):
                    self.unknown += 1
                    self.names_log |= words[0] == 'log'
                    groups[words[1]] = (1, [])
                    continue
                if key_id(name, raw[0], raw[1:]).hex() != hex_:
                    raise Refused('the witness policy has a wrong key')
                if words[0] == 'log':
                    self.names_log = True
                    self.logs.append((name, raw[0], raw[1:]))
                else:
                    self.witnesses[(name, raw[0], raw[1:])] = words[1]
            elif words[0] == 'group':
                need = {'any': 1, 'all': len(words) - 3}.get(words[2]) or int(words[2])
                groups[words[1]] = (need, words[3:])
            elif words[0] == 'quorum':
                self.quorum = words[1] if words[1] != 'none' else None
        self.groups = groups

    def meets_quorum(self, signed, name):
        if name in self.groups:
            need, members = self.groups[name]
            return sum(self.meets_quorum(signed, member) for member in members) >= need
        return name in signed


def about(event):
    """What a finding says of its event."""
    part = event.get('authorization')
    action = part.get('action') if isinstance(part, dict) else None
    tool = event.get('tool_name', action.get('tool_name') if isinstance(action, dict) else None)
    kind, who = event.get('event_type'), event.get('principal_id')
    out = {'principal_id': who} if holds('common.json#/$defs/principal_id', who) else {}
    if holds('common.json#/$defs/tool_name', tool):
        out['tool_name'] = tool
    return {**out, 'event_type': kind} if kind in ('execution', 'authorization') else out


def _once(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError('a repeated name')
    return dict(pairs)


class Verifier(Rules):
    def __init__(self, trust=None, held=(), parents=(), predecessor=None, now=None, keeps_roots=False, trace=None):
        self.keeps_roots, self.is_at_end, self.trace, self.sums = keeps_roots, False, trace, {}
        self.trust, self.held, self.predecessor, self.now = trust or Trust(), held, predecessor, now
        self.parents = {parent.ledger_id: parent for parent in parents}
        self.findings, self.folds = [], {}
        self.ids, self.pending, self.types = {}, {}, {}
        self.count = self.bytes = 0
        self.tree, self.prev, self.expected, self.other = Tree(), sha(), 0, 0
        self.roots, self.recs = {}, []
        self.layout = self.ledger_id = self.tip = self.genesis = self.origin = self.clock = None
        self.keys = {key.id: key for key in self.trust.keys}
        self.authority = any('authority' in key.roles for key in self.trust.keys)
        self.points, self.by_event, self.covered_by = [], {}, []
        self.sealed = self.last_seal = None
        self.signature_counts = {'valid': 0, 'invalid': 0, 'unverified': 0, 'missing': 0}
        self.relation = 'other-ledger'
        self.signers, self.unknown_lines, self.point_count = {}, 0, 0
        # Sizes at which roots are asked for at the end.
        self.asked = {note.size for _, note in held}
        self.begin_rules()

    def find(self, code, rec, place=None, cause=None, cls=None, at=None, severity=None, related=None):
        if cls is None:
            cls = 'violation' if code in VIOLATIONS else 'none' if code in WARNINGS or code in INFOS else 'invalid'
        if severity is None:
            severity = 'error' if cls != 'none' else 'info' if code in INFOS or code == 'TAIL_UNSEALED' else 'warning'
        if isinstance(rec, Record):
            rec.invalid |= cls == 'invalid'
            rec.own_invalid |= cls == 'invalid' and not self.is_at_end
            rec.violation |= cls == 'violation'
            where = [rec.file, rec.line, rec.offset, rec.length]
            if place is not None and rec.is_bare and place.startswith('/event'):
                place = place[6:]
        else:
            where = rec or self.end
            rec = None
        if at:
            where[2:] = at
        key = (code, severity, cause)
        if cause is not None and len(cause.encode('utf-16-be')) <= 512:
            if key in self.folds:
                self.folds[key]['folded'] = self.folds[key].get('folded', 0) + 1
                return
        finding = {
            'code': code, 'severity': severity, 'class': cls, 'at': {
                'file': where[0], 'line': where[1], 'byte_offset': where[2], 'byte_length': where[3]},
            'seq': rec.seq if rec else None, 'event_id': rec.id if rec else None,
        }
        if place is not None:
            finding['at']['pointer'] = place
        if rec and rec.event is not None and not self.is_at_end:
            finding.update(about(rec.event))
        if related is not None:
            finding['related'] = [{'file': related.file, 'line': related.line, 'seq': related.seq, 'event_id': related.id}]
        self.findings.append(finding)
        if cause is not None and len(self.folds) < 4096 and len(cause.encode('utf-16-be')) <= 512:
            self.folds[key] = finding

    # Lines

    def run(self, name, files):
        self.path, self.end = name, [name, 1, 0, 0]
        for file, data, first in files:
            self.file(file, data, first)
        self.finish()
        return self

    def file(self, file, data, first):
        lines, offset = data.split(b'\n'), 0
        self.bytes += len(data)
        for number, line in enumerate(lines[:-1], 1):
            rec = Record(file, number, offset, len(line), self.count)
            offset += len(line) + 1
            if not line:
                self.find('LINE_BLANK', rec)
                continue
            self.line(rec, line, first if number == 1 else None)
        self.end = [file, len(lines), offset, 0]
        if lines[-1]:
            self.find('LINE_TORN', Record(file, len(lines), offset, len(lines[-1]), None))

    def line(self, rec, line, first):
        self.recs.append(rec)
        clock = self.clock
        if len(line) > 65535:
            self.find('LINE_TOO_LONG', rec)
        else:
            self.judge(rec, line, first)
        if rec.is_overdue:
            self.find('CHECKPOINT_MISSING', rec, cause=str(self.last_seal and self.last_seal.rec.id))
        leaf = sha(b'\0', line)
        self.tree.add(leaf)
        self.prev, self.count = leaf, self.count + 1
        if self.keeps_roots or self.count in self.asked:
            self.roots[self.count] = self.tree.root()
        self.other = self.expected + 1 if rec.seq == self.expected else self.other + 1
        self.expected = rec.seq + 1 if rec.seq is not None else self.expected + 1
        if self.trace is not None:
            self.trace.append(self.step(rec, clock))
        if rec.event is None:
            return
        kind = rec.event.get('event_type')
        if isinstance(kind, str):
            self.types[kind] = self.types.get(kind, 0) + 1
        if rec.id is None:
            return
        self.tip = rec.id
        self.ids.setdefault(rec.id, rec)
        for waiting in self.pending.pop(rec.id, ()):
            code = 'AUTH_AFTER_EXECUTION' if kind == 'authorization' else 'AUTH_NOT_AN_AUTHORIZATION'
            self.find(code, waiting, '/event/auth_event_id', 'late ' + rec.id)

    def step(self, rec, clock):
        """What holds after a record, as the conformance protocol has it."""
        changed = []
        for grant in self.grants.values():
            for unit, one in grant.accounts.items():
                sums = tuple(str(part) for part in (one.used, one.reserved, min(one.estimated, one.used)))
                if self.sums.get((grant, unit)) != sums:
                    self.sums[grant, unit] = sums
                    changed.append({'grant': grant.id, 'unit': unit, **dict(zip(('used', 'reserved', 'estimated'), sums))})
        return {
            'seq': rec.index, 'clock': None if clock is None else timestamp(clock), 'verdict': rec.verdict(),
            'signatures': rec.outcomes, 'accounts': changed, 'approvals': [
                one.rec.id for one in self.approvals.values() if one.used_by is not None and one.used_by == rec.id],
            'root': 'sha-256:' + b64url(self.tree.root())}

    def overdue(self, rec):
        most = self.trust.require.get('checkpoint_max_records')
        since = self.last_seal.rec.index + 1 if self.last_seal else 0
        rec.is_overdue = most is not None and rec.type != 'checkpoint' and rec.index - since >= most

    def judge(self, rec, line, first):
        value, fault = read(line)
        if fault:
            code, at, place = fault
            self.find(code, rec, place, at=(rec.offset + at, 1 if at < len(line) else 0))
            return
        if not isinstance(value, dict):
            self.find('SCHEMA', rec, '')
            return
        if self.layout is None:
            self.layout = 'bare' if 'event_type' in value and 'event' not in value else 'records'
        rec.is_bare = self.layout == 'bare'
        event = value if rec.is_bare else value.get('event')
        faults = [] if rec.is_bare else check_record(value)
        if rec.is_bare or isinstance(event, dict):
            wrong = check_event(event, () if rec.is_bare else ('event',))
            rec.ok = not wrong
            faults += wrong
        if not rec.is_bare:
            seq = value.get('seq')
            rec.seq = seq if holds('common.json#/$defs/safe_integer', seq) else None
        if isinstance(event, dict):
            rec.event, rec.type = event, event.get('event_type')
            rec.id = digest_text(event.get('event_id'))
            rec.is_new = rec.id not in self.ids or rec.id is None
        for path, code in faults:
            self.find(code, rec, ('/event' if rec.is_bare else '') + pointer(path))
        if rec.event is not None:
            self.identity(rec, event)
        if not rec.is_bare:
            self.chain(rec, value, first)
        if rec.event is None:
            return self.overdue(rec)
        if rec.index == 0:
            self.first(rec, event)
        if isinstance(rec.type, str) and holds('common.json#/$defs/event_type', rec.type) and rec.type not in KNOWN \
                and not rec.type.startswith('x.'):
            self.find('EVENT_TYPE_UNKNOWN', rec, '/event/event_type', rec.type)
        if rec.ok and 'prev_event_id' in event and digest_text(event['prev_event_id']) not in self.ids:
            self.find('PREV_EVENT_NOT_FOUND', rec, '/event/prev_event_id')
        if not rec.is_new:
            self.find('EVENT_DUPLICATE', rec, '/event/event_id')
        self.signatures(rec, value, event)
        is_judged = rec.ok and rec.is_new
        if is_judged and not rec.is_bare and rec.type in ('checkpoint', 'attestation', 'key'):
            getattr(self, 'step_' + rec.type)(rec, event)
        elif rec.type == 'checkpoint':
            self.point_count += 1
        self.overdue(rec)
        if is_judged:
            self.apply_rules(rec)
            if rec.type == 'checkpoint' and not rec.own_invalid:
                self.settle_slices(rec)

    def identity(self, rec, event):
        payload = canonical({name: event[name] for name in event if name not in ('event_id', 'payload_digest')})
        digest = event.get('payload_digest')
        if is_digest(digest) and digest['b64'] != b64url(sha(payload)):
            self.find('PAYLOAD_DIGEST_MISMATCH', rec, '/event/payload_digest')
        if rec.id and rec.id != 'sha-256:' + b64url(sha(b'northroot:event:v1\0', payload)):
            self.find('EVENT_ID_MISMATCH', rec, '/event/event_id')
        rec.is_unbound = False
        named = digest_text(event.get('ledger_id'))
        if rec.is_bare:
            self.ledger_id = self.ledger_id or named
        elif rec.index == 0:
            self.ledger_id = rec.id
            return
        if named and self.ledger_id and named != self.ledger_id:
            self.find('LEDGER_MISMATCH', rec, '/event/ledger_id', named)
            rec.is_unbound = True
        if rec.is_bare or 'ledger_id' in event:
            return
        is_required = self.genesis and self.genesis['signing'].get('binding') == 'required'
        if rec.type == 'key':
            self.find('LEDGER_UNBOUND', rec, '/event/ledger_id', 'key')
            rec.is_unbound = True
        elif is_required and rec.type != 'genesis':
            self.find('LEDGER_UNBOUND', rec, '/event/ledger_id', '')

    def chain(self, rec, value, first):
        if rec.event is not None:
            if rec.index == 0 and isinstance(rec.type, str) and rec.type != 'genesis':
                self.find('GENESIS_MISSING', rec, '/event/event_type')
            if rec.index > 0 and rec.type == 'genesis':
                self.find('GENESIS_MISPLACED', rec, '/event/event_type')
        prev = value.get('prev')
        if is_digest(prev) and prev['b64'] != b64url(self.prev):
            self.find('PREV_MISMATCH', rec, '/prev')
        if rec.seq is not None and (rec.seq not in (self.expected, self.other) or first is not None and rec.seq != first):
            self.find('SEQ_GAP', rec, '/seq')

    def first(self, rec, event):
        origins = self.trust.origins
        if rec.is_bare:
            if origins is not None:
                self.find('ORIGIN_MISMATCH', rec, '')
            return
        if not rec.ok or rec.type != 'genesis':
            return
        self.genesis, self.origin, self.clock = event, event['origin'], instant(event['occurred_at'])
        if origins is not None and self.origin not in origins:
            self.find('ORIGIN_MISMATCH', rec, '/event/origin')
        seen = set()
        for index, entry in enumerate(event['keys']):
            key = Key(entry)
            fault = key.fault() or ('keyid' if key.id in seen else None)
            if fault:
                self.find('SCHEMA', rec, f'/event/keys/{index}/{fault}')
                continue
            seen.add(key.id)
            if not self.trust.is_given:
                self.keys[key.id] = key
                self.authority |= 'authority' in key.roles

    # Signatures

    def signatures(self, rec, value, event):
        demanded = self.trust.require.get('event_signatures')
        if rec.is_bare:
            if demanded == 'required':
                self.signature_counts['missing'] += 1
                self.find('SIGNATURE_MISSING', rec, '', '')
            return
        is_required = (demanded or (self.genesis or {}).get('signing', {}).get('events')) == 'required'
        is_authority = rec.ok and self._needs_authority(event)
        is_required |= rec.type == 'key' or self.authority and is_authority
        given = value.get('signatures')
        if not isinstance(given, list) or len(given) > 16 or not all(
                isinstance(one, dict) and isinstance(one.get('keyid'), str) and isinstance(one.get('sig'), str) for one in given):
            return
        self.needs_authority |= is_authority and not self.authority
        if not given:
            self.signature_counts['missing'] += 1
            if is_required:
                self.find('SIGNATURE_MISSING', rec, '/signatures')
            return
        message = pae(canonical(event))
        seen, results, valid = set(), [], []
        for index, one in enumerate(given):
            outcome = {'keyid': one['keyid'], 'outcome': 'copy'}
            rec.outcomes.append(outcome)
            if (one['keyid'], one['sig']) in seen:
                continue
            seen.add((one['keyid'], one['sig']))
            key, place = self.keys.get(one['keyid']), f'/signatures/{index}'
            if key is None:
                results.append(('KEY_UNKNOWN', place, one['keyid']))
                self.signature_counts['unverified'] += 1
                outcome['outcome'] = 'unverified'
                continue
            if not key.signs(message, one['sig']):
                self.find('SIGNATURE_INVALID', rec, place)
                self.signature_counts['invalid'] += 1
                outcome['outcome'] = 'invalid'
                continue
            fault = self.entitlement(rec, event, key) if rec.ok else None
            outcome['outcome'] = 'invalid' if fault else 'valid'
            if fault:
                results.append((fault, place, None))
                self.signature_counts['invalid'] += 1
            else:
                self.signature_counts['valid'] += 1
                valid.append(key)
                rec.signed = True
                if rec.ok and key not in rec.counting:
                    rec.counting.append(key)
        for key in dict.fromkeys(valid):
            self.signers[key.id] = self.signers.get(key.id, 0) + 1
        codes = {code for code, _, _ in results}
        for code, place, cause in results:
            is_warning = rec.signed or code == 'KEY_UNKNOWN' and not is_required or (
                code == 'KEY_NOT_FOR_ROLE' and codes & {'KEY_NOT_FOR_PRINCIPAL', 'KEY_NOT_VALID_HERE'})
            self.find(code, rec, place, cause, 'none' if is_warning else 'invalid')

    def _needs_authority(self, event):
        kind = event['event_type']
        if kind == 'authorization':
            part = event['authorization']
            return event['decision'] == 'allow' and (part['kind'] == 'grant' or 'grant_event_id' not in part)
        return kind in ('approval', 'revocation') or kind == 'adjustment' and event['direction'] == 'credit'

    def entitlement(self, rec, event, key):
        rows = self.rows(event)
        if key.webauthn and rec.type != 'approval' or not any(role in key.roles for role, _ in rows):
            return 'KEY_NOT_FOR_ROLE'
        if not any(role in key.roles and all(key.covers(one) for one in people) for role, people in rows):
            return 'KEY_NOT_FOR_PRINCIPAL'
        return None if key.revoked is None and key.is_valid_at(self.at(rec)) else 'KEY_NOT_VALID_HERE'

    def rows(self, event):
        """-> which roles may sign this, each with the principals that the key must cover."""
        kind, who = event['event_type'], event['principal_id']
        roles = [(role, [who]) for role in ROLES.get(kind, ('event',))]
        part = event.get('authorization') if kind == 'authorization' else event
        grant = self.grants.get(digest_text(part.get('grant_event_id'))) if kind in (
            'authorization', 'adjustment', 'approval', 'revocation') else None
        is_grant = kind == 'authorization' and event['decision'] == 'allow' and part['kind'] == 'grant'
        if not self.authority:
            return [*roles, ('event', [grant.principal])] if is_grant and grant else roles
        either = [('authority', [who]), ('event', [who])]
        if kind == 'authorization':
            if event['decision'] == 'deny':
                return either
            if is_grant and grant:
                return [('authority', [who, grant.principal]), ('event', [grant.principal])]
            return either if not is_grant and 'grant_event_id' in part else either[:1]
        if kind == 'approval' or kind == 'adjustment' and event['direction'] == 'debit':
            return either
        if kind not in ('adjustment', 'revocation'):
            return roles
        if not grant:
            return either[:1]
        first = [('authority', [who, grant.principal])]
        if kind == 'adjustment':
            return first
        if event['effect'] == 'resume':
            period = grant.withdrawn()
            is_free = not (period and period.by_authority)
            may = is_free and who != grant.principal and any(above.principal == who for above in grant.chain)
        else:
            may = any(above.principal == who for above in grant.chain)
        return first + either if may else first

    # Step 10

    def step_key(self, rec, event):
        if not rec.signed or rec.is_unbound:
            return
        entry = event['key']
        old = self.keys.get(entry['keyid'])
        if event['action'] == 'revoke':
            if old is None:
                self.find('KEY_UNKNOWN', rec, '/event/key/keyid', cls='none')
            elif old.revoked is None:
                old.revoked, old.revoked_seq = rec.index, rec.seq
            return
        if old is not None and old.pinned:
            return
        key = Key(entry, adders=list(rec.counting))
        fault = key.fault()
        if fault or old is not None:
            self.find('SCHEMA', rec, '/event/key/' + (fault or 'keyid'))
            return
        self.keys[key.id] = key
        self.authority |= 'authority' in key.roles

    def step_checkpoint(self, rec, event):
        self.point_count += 1
        right = True

        def tell(code, place, cause=None):
            nonlocal right
            right = False
            self.find(code, rec, '/event/' + place, cause)

        root = b64url(self.tree.root())
        if event['tree_size'] != self.count:
            tell('CHECKPOINT_SIZE_MISMATCH', 'tree_size', str(event['tree_size'] - self.count))
        else:
            if event['root']['b64'] != root:
                tell('CHECKPOINT_ROOT_MISMATCH', 'root', '')
            if digest_text(event['chain_tip_event_id']) != self.tip:
                tell('CHECKPOINT_ROOT_MISMATCH', 'chain_tip_event_id')
        note = parse_note(event['note'])
        self.by_event[rec.id] = point = None
        if note is None:
            tell('CHECKPOINT_NOTE_MALFORMED', 'note')
            self.by_event[rec.id] = (rec, None)
            return
        point = Checkpoint(note, rec)
        self.by_event[rec.id] = (rec, point)
        self.points.append(point)
        is_ours = self.origin is None or note.origin == self.origin
        if not is_ours:
            tell('ORIGIN_MISMATCH', 'note')
        if note.size != event['tree_size']:
            tell('CHECKPOINT_SIZE_MISMATCH', 'note')
        if note.root != from_b64url(event['root']['b64']):
            tell('CHECKPOINT_ROOT_MISMATCH', 'note')
        point.right = right
        if is_ours:
            self.note_signatures(rec, point, note, self.at(rec), 'checkpoint')
        self.seal(point)

    def step_attestation(self, rec, event):
        known = self.by_event.get(digest_text(event['checkpoint_event_id']))
        if known is None:
            self.find('CHECKPOINT_MISSING', rec, '/event/checkpoint_event_id')
        note = parse_note(event['note'])
        point = known[1] if known else None
        if note is None or point is not None and note.text != point.note.text:
            self.find('CHECKPOINT_NOTE_MALFORMED', rec, '/event/note')
            return
        if point is None:
            point = Checkpoint(note, rec)
            point.right = False
        rec.attests = point
        if self.origin is None or note.origin == self.origin:
            self.note_signatures(rec, point, note, self.at(rec), 'attestation')
        self.seal(point)

    def at(self, rec):
        at = instant(rec.event['occurred_at'])
        return at if self.clock is None else max(at, self.clock)

    def seal(self, point):
        if point.seals or not point.right or not point.log_keys:
            return
        point.seals = True
        if point.rec is None:
            return
        if self.last_seal is None or point.rec.index > self.last_seal.rec.index:
            self.last_seal = point
        if any('checkpoint' in key.roles for key in point.rec.counting):
            point.is_dated = True
            self.clock = self.at(point.rec)

    def candidates(self, note, line):
        """-> the keys that a line belongs to: (side, type, kind, raw, ledger key, name of the witness in the policy)."""
        name, id_, _ = line
        out, origin = [], note.origin
        for key in self.keys.values():
            if key.webauthn:
                continue
            is_witness = 'witness' in key.roles
            if key.kind == 'ed25519':
                if name == origin and key_id(origin, 1, key.bytes) == id_:
                    out.append(('log', 1, key.kind, key.bytes, key))
                if is_witness and key.name == name and key_id(name, 4, key.bytes) == id_:
                    out.append(('witness', 4, key.kind, key.bytes, key))
            elif key.kind == 'ml-dsa-44' and key_id(name, 6, key.bytes) == id_:
                if name == origin and ('checkpoint' in key.roles or not is_witness):
                    out.append(('log', 6, key.kind, key.bytes, key))
                elif is_witness and key.name == name:
                    out.append(('witness', 6, key.kind, key.bytes, key))
        known = {(side, raw) for side, _, _, raw, _ in out}
        lists = [('log', self.trust.logs if name == origin else ()), ('witness', self.trust.witnesses)]
        for side, entries in lists:
            for entry, type_, raw in entries:
                if entry == name and key_id(name, type_, raw) == id_ and (side, raw) not in known:
                    out.append((side, type_, 'ml-dsa-44' if type_ == 6 else 'ed25519', raw, None))
        return out

    def note_signatures(self, rec, point, note, at, mode):
        """Judges the lines of a note. mode: checkpoint, attestation or held."""
        trust = self.trust
        revoked = {key.bytes for key in self.keys.values() if key.revoked is not None and (
            mode != 'held' or key.revoked < note.size)}
        first, later, log_counts, seen = [], [], False, set()
        for line in dict.fromkeys(note.lines):
            name, id_, signature = line
            found = self.candidates(note, line)
            if not found:
                self.unknown_lines += mode != 'held'
                continue
            right = [(one, time) for one in found for is_right, time in [
                note.holds(one[2], one[3], name, signature, one[1])] if is_right]
            if not right:
                first.append(('CHECKPOINT_SIGNATURE_INVALID', found[0][:1] + found[0][3:4]))
            for one, time in right:
                side, type_, _, raw, key = one
                me = (side, raw)
                is_log = side == 'log'
                by_policy = (name, type_, raw) in (trust.logs if is_log else trust.witnesses)
                is_valid = raw not in revoked and (key is None or by_policy or mode == 'held' or key.is_valid_at(at))
                if not is_valid:
                    later.append(('KEY_NOT_VALID_HERE', me))
                is_role = not is_log or by_policy or 'checkpoint' in key.roles
                if not is_role:
                    later.append(('KEY_NOT_FOR_ROLE', me))
                if not is_valid or not is_role:
                    continue
                if is_log:
                    log_counts = True
                    if key and 'checkpoint' in key.roles and (mode == 'held' or key.is_valid_at(at)):
                        point.log_keys[key.id] = key
                        point.signed[key.id, name, 'log', False] = True
                        if key.pinned:
                            point.pinned.add(key.id)
                    if by_policy:
                        point.by_policy.add('log')
                elif time and raw not in trust.log_bytes:
                    if key and key.pinned:
                        point.names.add(name)
                    point.signed[keyid(one[2], raw), name, 'witness', not by_policy and not key.pinned] = True
                    if by_policy:
                        point.by_policy.add(trust.witnesses[(name, type_, raw)])
        place = '/event/note' if mode != 'held' else None
        where = rec if mode != 'held' else [point.path, 1, 0, 0]
        for code, me in [*first, *later]:
            if (code, me) in seen:
                continue
            seen.add((code, me))
            is_warning = mode == 'attestation' or code != 'CHECKPOINT_SIGNATURE_INVALID' and log_counts
            self.find(code, where, place, cls='none' if is_warning else 'invalid')
        if mode == 'checkpoint' and not log_counts and not seen:
            lines = [line for line in note.lines if line[0] == note.origin]
            cause = f'note {note.origin}+{lines[0][1].hex()}' if lines else f'note none named {note.origin}'
            self.find('KEY_UNKNOWN', rec, place, cause, 'invalid' if self.requires_checkpoints() else 'none')

    def requires_checkpoints(self):
        """-> None, or how many records there must be before one is missed."""
        require, trust = self.trust.require, self.trust
        if any(name in require for name in ('checkpoint_quorum', 'witness_threshold', 'checkpoint_max_age_seconds')) \
                or trust.names_log or trust.quorum:
            return 1
        if 'checkpoints' in require:
            return 1 if require['checkpoints'] == 'required' else None
        return 2 if self.genesis and self.genesis['signing']['checkpoints'] == 'required' else None

    def enough_logs(self, point):
        return len(point.pinned) >= self.trust.require.get('checkpoint_quorum', 0) and (
            not self.trust.names_log or 'log' in point.by_policy)

    def meets(self, point):
        trust = self.trust
        return point.seals and point.size > 0 and self.enough_logs(point) \
            and len(point.names) >= trust.require.get('witness_threshold', 0) \
            and (trust.quorum is None or trust.meets_quorum(point.by_policy, trust.quorum))

    # The end

    def finish(self):
        self.is_at_end = True
        for text, waiting in sorted(
                ((text, rec) for text, recs in self.pending.items() for rec in recs), key=lambda pair: pair[1].index):
            self.find('AUTH_NOT_FOUND', waiting, '/event/auth_event_id', 'late ' + text)
        # What is held counts for what follows, though its findings come later.
        found, self.findings = self.findings, []
        for path, note in self.held:
            self.hold(path, note)
        held, self.findings = self.findings, found
        self.uncovered()
        self.demands()
        self.findings += held
        self.succeeds()
        self.end_slices()
        rank = {('error', 'invalid'): 0, ('error', 'violation'): 1, ('warning', 'none'): 2, ('info', 'none'): 3}
        self.findings.sort(key=lambda finding: rank[finding['severity'], finding['class']])

    def hold(self, path, note):
        point = Checkpoint(note, None, path)
        is_ours = self.origin is None or note.origin == self.origin
        self.note_signatures(None, point, note, None, 'held')
        where = [path, 1, 0, 0]
        root = self.roots.get(note.size) if note.size else sha()
        point.relation = 'other-origin' if not is_ours else 'truncated' if note.size > self.count else \
            'forked' if root != note.root else 'extends'
        code = {'other-origin': 'ORIGIN_MISMATCH', 'truncated': 'TRUNCATED', 'forked': 'FORKED'}.get(point.relation)
        if code:
            self.find(code, where if code == 'ORIGIN_MISMATCH' else None)
        point.right = not code and note.size > 0
        self.seal(point)
        self.points.append(point)

    def uncovered(self):
        cover, first = covers(self)[1], {}
        for rec in needing_cover(self):
            if rec.index >= cover and not rec.invalid:
                first.setdefault(frozenset(key.id for key in rec.counting), []).append(rec)
        for ids, recs in first.items():
            for rec in recs:
                self.find('KEY_NOT_VALID_HERE', rec, '/signatures/0', 'signers ' + ' '.join(sorted(ids)))

    def demands(self):
        require = self.trust.require
        order = sorted((point for point in self.points if point.seals), key=lambda point: (point.size, point.rec is None))
        last = order[-1] if order else None
        meeting = [point for point in order if self.meets(point)]
        least = self.requires_checkpoints()
        if least and self.count >= least and not (last and self.meets(last)):
            code = 'CHECKPOINT_MISSING' if last is None or not self.enough_logs(last) else 'WITNESS_QUORUM'
            self.find(code, last and last.rec, cls='none' if meeting else 'invalid')
        age = require.get('checkpoint_max_age_seconds')
        if age is not None and meeting:
            own = [point for point in meeting if point.rec]
            at = instant(own[-1].rec.event['occurred_at']) if own and own[-1].is_dated else None
            if at is None or abs(self.now - at) > age * 10**9:
                self.find('CHECKPOINT_MISSING', meeting[-1].rec)
        most = require.get('max_unsealed_records')
        if most is not None:
            base = meeting[-1] if meeting else None
            rest = [rec for rec in self.recs[base.size if base else 0:] if not base or rec is not base.rec]
            rest = [rec for rec in rest if not base or getattr(rec, 'attests', None) is not base]
            if len(rest) > most:
                self.find('TAIL_UNSEALED', base and base.rec, cls='invalid')
                return
        if last and self.unsealed(last):
            self.find('TAIL_UNSEALED', last and last.rec, cls='none')

    def unsealed(self, point):
        return self.count - point.size - (point.rec is not None)

    def succeeds(self):
        if self.predecessor is None:
            return
        stated, other = (self.genesis or {}).get('continues'), self.predecessor
        if stated is None:
            self.find('LEDGER_MISMATCH', self.recs[0] if self.genesis else None, '/event/continues' if self.genesis else None)
            return
        code = place = None
        if other.ledger_id != digest_text(stated['ledger_id']) or other.layout != 'records':
            code, place = 'LEDGER_MISMATCH', 'ledger_id'
        elif other.count < stated['tree_size']:
            code, place = 'TRUNCATED', 'tree_size'
        elif b64url(other.roots.get(stated['tree_size'], sha())) != stated['root']['b64']:
            code, place = 'FORKED', 'root'
        self.relation = {None: 'continues', 'LEDGER_MISMATCH': 'other-ledger'}.get(code) or code.lower()
        if code:
            self.find(code, self.recs[0], '/event/continues/' + place)


def source(path):
    """-> a ledger as [(name, bytes, first seq of a segment or None)]."""
    if not os.path.isdir(path):
        return [(path, _load(path), None)]
    names = sorted(name for name in os.listdir(path) if SEGMENT.match(name))
    return [(os.path.join(path, name), _load(os.path.join(path, name)), int(name[:20])) for name in names]


def _load(name):
    with open(name, 'rb') as stream:
        return stream.read()


def judge(name, files, policy=None, witness=None, checkpoints=(), parents=(), predecessor=None, now=None, trace=None):
    """-> a Verifier that has read a ledger. All but names and the time is bytes; ledgers are as source() gives them."""
    trust, held = Trust(policy, witness), []
    for path, data in checkpoints:
        note = _held(data)
        if note is None:
            raise Refused('a held checkpoint is malformed: ' + path)
        held.append((path, note))
    at = instant(now) if now else time.time_ns()
    above = [Verifier(Trust(policy, witness), now=at).run(*parent) for parent in parents]
    before = Verifier(now=at, keeps_roots=True).run(*predecessor) if predecessor else None
    return Verifier(trust, held, above, before, at, trace=trace).run(name, files)


def verify(path, policy=None, witness=None, checkpoints=(), parents=(), predecessor=None, now=None, most=1000):
    """-> the report of one ledger; everything is given as paths."""
    return report(judge(
        path, source(path), policy and _load(policy), witness and _load(witness),
        [(name, _load(name)) for name in checkpoints], [(name, source(name)) for name in parents],
        predecessor and (predecessor, source(predecessor)), now), most)


def _held(data):
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    head, mark, tail = text.rpartition('\n\n')
    # Repeated lines are ignored.
    return parse_note(head + mark + ''.join(dict.fromkeys(tail.splitlines(True))))


def main(args):
    if not args or args[0] not in ('verify', 'batch'):
        print('usage: verify.py verify LEDGER [--policy FILE] [--witness-policy FILE] [--checkpoint NOTE]… '
              '[--parent LEDGER]… [--predecessor LEDGER] [--now TIME] [--json], or: batch, cases as JSON lines', file=sys.stderr)
        return 2
    if args[0] == 'batch':
        for line in sys.stdin:
            try:
                out = verify(**json.loads(line), most=sys.maxsize)
            except (Refused, OSError) as error:
                out = {'error': str(error), 'exit_status': 2}
            except Exception as error:  # One case that fails leaves the others.
                out = {'error': ''.join(traceback.format_exception(error)), 'exit_status': 2}
            print(json.dumps(out), flush=True)
        return 0
    options, names = {'checkpoints': [], 'parents': []}, {
        '--policy': 'policy', '--witness-policy': 'witness', '--predecessor': 'predecessor', '--now': 'now',
        '--checkpoint': 'checkpoints', '--parent': 'parents'}
    rest, paths = iter(args[1:]), []
    try:
        for word in rest:
            if word in names:
                value = next(rest)
                if isinstance(options.get(names[word]), list):
                    options[names[word]].append(value)
                else:
                    options[names[word]] = value
            elif word != '--json':
                paths.append(word)
        out = verify(*paths, **options)
    except (Refused, OSError, TypeError, StopIteration) as error:
        print(f'error: {error}', file=sys.stderr)
        return 2
    print(json.dumps(out, indent=1) if '--json' in args else out['verdict'])
    return out['exit_status']


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
