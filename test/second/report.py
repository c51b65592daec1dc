"""The report (verification.md 9)."""
from canonical import canonical
from keys import digest
from rules import digest_of
from shape import digest_text

VERDICTS, EXITS = ('ok', 'denied', 'violation', 'invalid'), {'ok': 0, 'invalid': 1, 'undecided': 2, 'violation': 3}

def quantity(value):
    """An exact sum as a Quantity of the report."""
    if value.denominator == 1: return {'t': 'int', 'v': str(value.numerator)}
    scale = next((scale for scale in range(1, 39) if 10**scale % value.denominator == 0), None)
    if scale and abs(value * 10**scale) < 10**39:
        return {'t': 'dec', 'm': str(value.numerator * 10**scale // value.denominator), 's': scale}
    return {'t': 'rat', 'n': str(value.numerator), 'd': str(value.denominator)}

def report(v):
    """-> the report of a Verifier that has read its ledger."""
    verdicts, classes = [rec.verdict() for rec in v.recs], {finding['class'] for finding in v.findings}
    verdict = next((one for one in ('invalid', 'violation') if one in classes), 'ok' if v.count else 'undecided')
    out = {
        'report_version': '1', 'tool': {'name': 'northroot-second', 'version': '1'}, 'ledger': _ledger(v), 'verdict': verdict,
        'exit_status': EXITS[verdict], 'trust': _trust(v), 'checkpoints': _checkpoints(v), 'not_checked': not_checked(v),
        'counts': {'by_type': _types(v), 'by_verdict': {name: verdicts.count(name) for name in VERDICTS}},
        'grants': [_grant(grant) for grant in v.grants.values()],
        'open_authorizations': [{**_at(one.rec), 'tool_name': one.action['tool_name']} for one in v.actions.values() if not one.spent],
        'open_starts': [{**_at(one.rec), 'auth_event_id': one.target.id, **_some(one.rec, 'tool_name', 'started_at')}
                        for one in v.starts.values()],
        'approvals': [{**_who(one.rec, 'tool_name'), 'used_by': one.used_by} for one in v.approvals.values()
                      if one.counts and one.grant and one.event['decision'] == 'approve'],
        'revocations': [_who(rec, 'effect', 'in_flight') for rec in v.withdrawals],
        'findings': v.findings, 'findings_total': len(v.findings)}
    return out if v.starts else {name: out[name] for name in out if name != 'open_starts'}
def _at(rec):
    return {'event_id': rec.id, 'seq': rec.place}
def _some(rec, *names):
    return {name: rec.event[name] for name in names if name in rec.event}
def _who(rec, *names):
    return {**_at(rec), **_some(rec, 'principal_id', *names), 'grant_event_id': digest_text(rec.event['grant_event_id']),
            'signers': [key.id for key in rec.counting]}
def _types(v):
    out = {}
    for kind, count in v.types.items():
        name = kind if len(kind) <= 128 and (kind in out or len(out) < 1000) else '*'
        out[name] = out.get(name, 0) + count
    return dict(sorted(out.items()))
def _ledger(v):
    out, stated = {
        'paths': [v.path], 'origin': v.origin, 'records': v.count, 'bytes': v.bytes, 'tree_size': v.count,
        'root': digest(v.roots[-1]), 'tip_event_id': v.tip}, v.genesis.get('continues')
    if stated:
        out['continues'] = {name: digest_text(stated[name]) or stated[name] for name in ('ledger_id', 'tree_size', 'root')}
        out['continues'].update({'relation': v.relation} if v.predecessor else {})
    return out
def _mode(v):
    return 'policy' if v.trust.is_given else 'self-declared' if v.keys else 'none'

def _trust(v):
    out = {'mode': _mode(v), 'signatures': v.signatures, 'signers': []}
    for id_, count in v.signers.items():
        name = {'name': v.keys[id_].name} if v.keys[id_].name is not None else {}
        out['signers'].append({'keyid': id_, **name, 'principals': v.keys[id_].principals, 'records': count})
    clean, cover = v.covers()
    for key in v.keys.values():
        if key.revoked is None: continue
        last = [rec.index for rec in v.counted() if key in rec.counting][-1:]
        rests = [{'rests_on': 'checkpoints_by_others' if index < clean else 'own_checkpoints' if index < cover else 'nothing'}
                 for index in last]
        out.setdefault('revoked', []).append({
            'keyid': key.id, 'revoked_at_seq': key.revoked_seq, 'records': v.signers.get(key.id, 0), **(rests[0] if rests else {})})
    return out
def _checkpoints(v):
    best = max((point for point in v.points if point.seals and point.rec), key=lambda point: point.size, default=None)
    out, signers = {'count': v.point_count, 'last_tree_size': best and best.size, 'unsealed': v.unsealed(best) if best else v.count}, {}
    for point in v.points:
        for (id_, name, role), declared in point.signed.items() if point.right and point.rec else ():
            one = {'keyid': id_, 'name': name, 'role': role, **({'declared': True} if declared else {}), 'tree_size': 0}
            one = signers.setdefault((id_, name, role), one)
            one['tree_size'] = max(one['tree_size'], point.size)
    anchors = [{'path': point.path, 'tree_size': point.size, 'relation': point.relation, 'signed_by': list(point.log_keys)}
               for point in v.points if point.rec is None]
    out.update({'signers': list(signers.values())} if signers else {})
    return {**out, 'anchors': anchors} if anchors else out
def _grant(grant):
    out, periods = {**_at(grant.rec), 'principal_id': grant.principal}, [one.withdrawn() for one in grant.chain if one.withdrawn()]
    out.update({'expires_at': grant.bounds['expires_at']} if 'expires_at' in grant.bounds else {})
    out.update({'parent_event_id': grant.parent.id} if grant.parent else {})
    for one in sorted(periods, key=lambda one: not one.is_final)[:1]:
        out['withdrawn'] = {'effect': 'revoke' if one.is_final else 'suspend', **_at(one.rec)}
    out.update(signers=[key.id for key in grant.rec.counting], executions=grant.executions, meters=[])
    for unit, one in grant.accounts.items():
        parts = {'cap': one.cap, 'used': one.used, 'estimated': min(one.estimated, one.used), 'reserved': one.reserved,
                 'left': one.cap - one.used - one.reserved}
        out['meters'].append({'unit': unit, **{name: quantity(part) for name, part in parts.items() if name != 'estimated' or part > 0}})
    caps = [{'unit': unit, 'amount': quantity(cap)} for unit, cap in grant.caps.items()]
    return {**out, 'action_caps': caps} if caps else out

def not_checked(v):
    counts, held, seals = v.signatures, [one for one in v.points if one.rec is None], [one for one in v.points if one.seals]
    extended, has_held = [one for one in held if one.relation == 'extends'], any(one.size for one in held)
    largest, last = max((one.size for one in extended), default=0), max(seals, key=lambda one: (one.size, one.rec is None), default=None)
    demanded = v.trust.require.get('event_signatures') or v.genesis.get('signing', {}).get('events')
    has_points = v.point_count > 0 or not any(one.size for one in extended)
    clean, cover = v.covers()
    is_bare, unknown = v.layout == 'bare', not all(_is_known(v, *slice_) for slice_ in v.slices)
    slices = v.was_settled or unknown or any(_settled_unnamed(v))
    codes = {'CHAIN': 1, 'IMPORTED_AUTHORITY': v.imported, 'SLICES': slices} if is_bare else {
        'SIGNATURES': not v.keys, 'TRUST': _mode(v) == 'self-declared',
        'SIGNATURES_UNVERIFIED': v.keys and counts['unverified'] > 0,
        'SIGNATURES_MISSING': counts['missing'] > 0 and demanded != 'required',
        'TRUNCATION': largest < v.count if largest else not has_held,
        'ANCHOR_UNVERIFIED': sum(not one.log_keys for one in extended),
        'CHECKPOINTS': has_points and not any(one.rec for one in seals),
        'UNSEALED': last and v.unsealed(last) > 0,
        'WITNESSES': seals and not any(one.names or one.by_policy - {'log'} for one in seals),
        'NOTE_SIGNATURES_UNVERIFIED': v.unknown_lines > 0, 'WITNESS_POLICY_KEYS': v.trust.unknown > 0,
        'AUTHORITY': v.needs_authority, 'IMPORTED_AUTHORITY': v.imported,
        'PREDECESSOR': 'continues' in v.genesis and v.predecessor is None, 'SLICES': slices,
        'REVOKED_KEYS': any(clean <= rec.index < cover for rec in v.needing_cover())}
    shown = {'TRUNCATION': {'shown_before_seq': largest}} if largest else {}
    return [{'code': code, **shown.get(code, {})} for code, count in codes.items()
            for _ in range(count if code == 'ANCHOR_UNVERIFIED' else bool(count))]
def _settled_unnamed(v):
    """The slices that given parents settled for this ledger, and that no grant of it names."""
    right = digest_of(canonical({'ledger_id': v.ledger_id}))
    for parent in v.parents.values():
        for action in parent.actions.values():
            if action.is_slice and action.settlement and action.action['tool_params_digest'] == right:
                if (parent.ledger_id, action.id) not in v.slices: yield action
def _is_known(v, ledger_id, event_id):
    """Whether a slice's parent is given, is not invalid, and is sealed beyond the slice and its start."""
    parent = v.parents.get(ledger_id)
    if parent is None or any(finding['class'] == 'invalid' for finding in parent.findings): return False
    action = parent.actions.get(event_id)
    return not action or not action.begun or max(action.rec.index, action.start_index) < parent.covers()[1]
