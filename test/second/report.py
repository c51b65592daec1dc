"""The report (verification.md 9)."""

from keys import b64url
from rules import Action
from shape import digest_text

EXITS = {'ok': 0, 'invalid': 1, 'undecided': 2, 'violation': 3}


def quantity(value):
    """An exact sum as a Quantity of the report."""
    if value.denominator == 1:
        return {'t': 'int', 'v': str(value.numerator)}
    for scale in range(1, 39):
        if 10**scale % value.denominator == 0:
            mantissa = value.numerator * 10**scale // value.denominator
            if abs(mantissa) < 10**39:
                return {'t': 'dec', 'm': str(mantissa), 's': scale}
            break
    return {'t': 'rat', 'n': str(value.numerator), 'd': str(value.denominator)}


def report(v, most=1000):
    """-> the report of a Verifier that has read its ledger."""
    verdicts = {'ok': 0, 'denied': 0, 'violation': 0, 'invalid': 0}
    for rec in v.recs:
        verdicts[rec.verdict()] += 1
    classes = {finding['class'] for finding in v.findings}
    verdict = 'invalid' if 'invalid' in classes else 'violation' if 'violation' in classes else \
        'ok' if v.count else 'undecided'
    out = {
        'report_version': '1', 'tool': {'name': 'northroot-second', 'version': '1'},
        'ledger': _ledger(v), 'verdict': verdict, 'exit_status': EXITS[verdict], 'trust': _trust(v),
        'checkpoints': _checkpoints(v), 'not_checked': not_checked(v),
        'counts': {'by_type': _types(v), 'by_verdict': verdicts},
        'grants': [_grant(grant) for grant in v.grants.values()],
        'open_authorizations': [
            {'event_id': one.id, 'seq': one.rec.place, 'tool_name': one.action['tool_name']}
            for one in v.actions.values() if not one.spent],
    }
    if v.starts:
        out['open_starts'] = [
            {'event_id': one.rec.id, 'seq': one.rec.place, 'auth_event_id': one.target.id, 'tool_name': one.tool,
             'started_at': one.rec.event['started_at']} for one in v.starts.values()]
    out['approvals'] = [
        {**_who(one.rec), 'tool_name': one.event['tool_name'], 'used_by': one.used_by}
        for one in v.approvals.values() if one.counts and one.grant and one.event['decision'] == 'approve']
    out['revocations'] = [
        {**_who(rec), **{name: rec.event[name] for name in ('effect', 'in_flight') if name in rec.event}}
        for rec in v.withdrawals]
    out.update(findings=v.findings[:most], findings_total=len(v.findings))
    return out


def _who(rec):
    return {'event_id': rec.id, 'seq': rec.place, 'principal_id': rec.event['principal_id'],
            'grant_event_id': digest_text(rec.event['grant_event_id']), 'signers': [key.id for key in rec.counting]}


def _types(v):
    out = {}
    for kind, count in v.types.items():
        name = kind if len(kind) <= 128 and (kind in out or len(out) < 1000) else '*'
        out[name] = out.get(name, 0) + count
    return dict(sorted(out.items()))


def _ledger(v):
    out = {
        'paths': [v.path], 'origin': v.origin, 'records': v.count, 'bytes': v.bytes, 'tree_size': v.count,
        'root': 'sha-256:' + b64url(v.tree.root()), 'tip_event_id': v.tip}
    stated = (v.genesis or {}).get('continues')
    if stated:
        out['continues'] = {
            'ledger_id': digest_text(stated['ledger_id']), 'tree_size': stated['tree_size'],
            'root': digest_text(stated['root'])}
        if v.predecessor:
            out['continues']['relation'] = v.relation
    return out


def _trust(v):
    out = {
        'mode': _mode(v), 'signatures': dict(v.signature_counts), 'signers': [
            {**_named(v.keys[id_]), 'principals': v.keys[id_].principals, 'records': count}
            for id_, count in v.signers.items()]}
    revoked = [key for key in v.keys.values() if key.revoked is not None]
    if revoked:
        exempt = {point.rec for point in v.points if point.seals}
        needs = [rec for rec in v.recs if rec not in exempt and not rec.own_invalid and not is_key_revocation(rec)]
        clean, cover = covers(v)
        out['revoked'] = []
        for key in revoked:
            one = {'keyid': key.id, 'revoked_at_seq': key.revoked_seq, 'records': v.signers.get(key.id, 0)}
            last = [rec.index for rec in needs if key in rec.counting][-1:]
            if last:
                one['rests_on'] = 'checkpoints_by_others' if last[0] < clean else \
                    'own_checkpoints' if last[0] < cover else 'nothing'
            out['revoked'].append(one)
    return out


def _named(key):
    return {'keyid': key.id, 'name': key.name} if key.name is not None else {'keyid': key.id}


def _mode(v):
    return 'policy' if v.trust.is_given else 'self-declared' if v.keys else 'none'


def _checkpoints(v):
    seals = [point for point in v.points if point.seals and point.rec]
    best = max(seals, key=lambda point: point.size) if seals else None
    out = {'count': v.point_count, 'last_tree_size': best.size if best else None,
           'unsealed': v.unsealed(best) if best else v.count}
    signers = {}
    for point in v.points:
        for (id_, name, role, declared) in point.signed if point.right and point.rec else ():
            one = {'keyid': id_, 'name': name, 'role': role}
            if declared:
                one['declared'] = True
            size = signers.setdefault((id_, name, role), {**one, 'tree_size': 0})
            size['tree_size'] = max(size['tree_size'], point.size)
    if signers:
        out['signers'] = list(signers.values())
    held = [point for point in v.points if point.rec is None]
    if held:
        out['anchors'] = [
            {'path': point.path, 'tree_size': point.size, 'relation': point.relation, 'signed_by': list(point.log_keys)}
            for point in held]
    return out


def _grant(grant):
    event = grant.rec
    out = {'event_id': grant.id, 'seq': event.place, 'principal_id': grant.principal}
    if 'expires_at' in grant.bounds:
        out['expires_at'] = grant.bounds['expires_at']
    if grant.parent:
        out['parent_event_id'] = grant.parent.id
    periods = [above.withdrawn() for above in grant.chain if above.withdrawn()]
    period = next((one for one in periods if one.is_final), periods[0] if periods else None)
    if period:
        out['withdrawn'] = {'effect': 'revoke' if period.is_final else 'suspend', 'seq': period.rec.place,
                            'event_id': period.rec.id}
    out['signers'] = [key.id for key in event.counting]
    out['executions'], out['meters'] = grant.executions, []
    for unit, one in grant.accounts.items():
        meter = {'unit': unit, 'cap': quantity(one.cap), 'used': quantity(one.used)}
        guessed = min(one.estimated, one.used)
        if guessed > 0:
            meter['estimated'] = quantity(guessed)
        meter.update(reserved=quantity(one.reserved), left=quantity(one.cap - one.used - one.reserved))
        out['meters'].append(meter)
    if grant.action_caps:
        out['action_caps'] = [{'unit': unit, 'amount': quantity(cap)} for unit, cap in grant.action_caps.items()]
    return out


def not_checked(v):
    out, counts, trust = [], v.signature_counts, v.trust
    held = [point for point in v.points if point.rec is None]
    extended = [point for point in held if point.relation == 'extends']
    seals = [point for point in v.points if point.seals]
    own = [point for point in seals if point.rec]

    def add(code, when, **more):
        out.extend([{'code': code, **more}] * int(when))

    if v.layout == 'bare':
        add('CHAIN', True)
        add('IMPORTED_AUTHORITY', v.imported)
        add('SLICES', _asks_for_slices(v))
        return out
    add('SIGNATURES', not v.keys)
    add('TRUST', _mode(v) == 'self-declared')
    add('SIGNATURES_UNVERIFIED', bool(v.keys) and counts['unverified'] > 0)
    demanded = trust.require.get('event_signatures') or (v.genesis or {}).get('signing', {}).get('events')
    add('SIGNATURES_MISSING', counts['missing'] > 0 and demanded != 'required')
    largest = max((point.size for point in extended), default=0)
    if largest < v.count if largest else not any(point.size for point in held):
        add('TRUNCATION', True, **({'shown_before_seq': largest} if largest else {}))
    add('ANCHOR_UNVERIFIED', sum(not point.log_keys for point in extended))
    add('CHECKPOINTS', not own and (v.point_count > 0 or not any(point.size for point in extended)))
    last = max(seals, key=lambda point: (point.size, point.rec is None), default=None)
    add('UNSEALED', last is not None and v.unsealed(last) > 0)
    add('WITNESSES', bool(seals) and not any(point.names or point.by_policy - {'log'} for point in seals))
    add('NOTE_SIGNATURES_UNVERIFIED', v.unknown_lines > 0)
    add('WITNESS_POLICY_KEYS', trust.unknown > 0)
    add('AUTHORITY', v.needs_authority)
    add('IMPORTED_AUTHORITY', v.imported)
    add('PREDECESSOR', 'continues' in (v.genesis or {}) and v.predecessor is None)
    add('SLICES', _asks_for_slices(v))
    clean, cover = covers(v)
    add('REVOKED_KEYS', any(clean <= rec.index < cover for rec in needing_cover(v)))
    return out


def _asks_for_slices(v):
    return v.was_settled or any(not _is_known(v, slice_) for slice_ in v.slices)


def _is_known(v, slice_):
    """Whether a slice's parent is given, is not invalid, and is sealed beyond the slice and its start."""
    parent = v.parents.get(slice_[0])
    if parent is None or any(finding['class'] == 'invalid' for finding in parent.findings):
        return False
    action = parent.actions.get(slice_[1])
    return not isinstance(action, Action) or not action.begun or \
        max(action.rec.index, action.start_index) < covers(parent)[1]


def covers(v):
    """-> how many records are covered by sealing checkpoints of keys that are not revoked, and by any."""
    tainted, size = {key.id for key in v.keys.values() if key.revoked is not None}, -1
    while size != len(tainted):
        size = len(tainted)
        tainted |= {key.id for key in v.keys.values() if key.adders and all(one.id in tainted for one in key.adders)}
    seals = [point for point in v.points if point.seals]
    return tuple(max((point.size for point in some), default=0) for some in (
        [point for point in seals if set(point.log_keys) - tainted], seals))


def needing_cover(v):
    """The records that only revoked keys signed."""
    sealing = {point.rec for point in v.points if point.seals}
    return [
        rec for rec in v.recs if rec.counting and all(key.revoked is not None for key in rec.counting)
        and rec not in sealing and not rec.own_invalid and not is_key_revocation(rec)]


def is_key_revocation(rec):
    return rec.ok and rec.type == 'key' and rec.event['action'] == 'revoke'
