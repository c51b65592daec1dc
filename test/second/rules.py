"""Step 11: the rules on authorizations, executions and what corrects them (verification.md, rules 1 to 18)."""

from bisect import bisect_left, insort
from fractions import Fraction
from math import lcm
from canonical import canonical
from keys import b64url, matches, sha
from shape import amount, digest_text, holds, instant, window

SLICE = 'northroot.slice'
MEASURED = ('calls', 'time.ms')
COMMON = 'common.json#/$defs/'
MODES = ['digest_only', 'allow_contentref', 'allow_inline']
START = {
    'intents': 'intents', 'auth_event_id': 'sha256_digest', 'tool_name': 'tool_name', 'started_at': 'timestamp',
    'meter_known': 'meter_vector',
}


def fits(value):
    """A denominator of at most 400 digits."""
    return value.denominator < 10**400


def vector(meters):
    return {meter['unit']: amount(meter['amount']) for meter in meters or ()}


def optional(event, name):
    return instant(event[name]) if name in event else None


def any_matches(patterns, tool):
    return any(pattern == tool or (pattern != SLICE and matches(pattern, tool)) for pattern in patterns)


def allows(patterns, tool):
    return tool in patterns if tool == SLICE else any_matches(patterns, tool)


def covers(mine, theirs):
    """Whether one pattern allows all that the other does."""
    if mine == theirs:
        return True
    if not mine.endswith('*') or theirs == SLICE:
        return False
    return theirs.startswith(mine[:-1]) and len(theirs) >= len(mine)


class Account:
    def __init__(self, cap):
        self.cap, self.used, self.reserved, self.estimated = cap, Fraction(0), Fraction(0), Fraction(0)


class Period:
    """A withdrawal of a grant: from where, whether it stops from where, until where."""

    def __init__(self, rec, is_final, stop, by_authority):
        self.rec, self.since, self.is_final, self.stop, self.by_authority, self.end = rec, rec.index, is_final, stop, by_authority, None


class Grant:
    def __init__(self, rec, parent):
        self.rec, self.id, self.event, self.parent = rec, rec.id, rec.event, parent
        self.principal, self.at, self.part = rec.event['principal_id'], instant(rec.event['occurred_at']), rec.event['authorization']
        bounds = self.bounds = self.part['bounds']
        self.chain = [self, *(parent.chain[:31] if parent else ())]
        self.depth = parent.depth + 1 if parent else 1
        self.root = parent.root if parent else self
        self.accounts = {unit: Account(cap) for unit, cap in vector(bounds['meter_caps']).items()}
        self.action_caps = vector(bounds.get('action_caps'))
        self.from_, self.until = optional(bounds, 'not_before'), optional(bounds, 'expires_at')
        self.rates = [(*window(meter['unit']), amount(meter['amount']), []) for meter in bounds.get('rate_limits', ())]
        limit = bounds.get('concurrency_limit')
        self.limit, self.runs = int(limit['v']) if limit else None, []
        self.rules = [(rule, vector(rule['above']) if 'above' in rule else None) for rule in bounds.get('approvals', ())]
        self.periods, self.starts, self.executions = [], set(), 0
        self.imported = 'source' in self.event
        self.slice, self.settled, self.state = None, False, None
        if 'slice' in self.part:
            self.slice = tuple(digest_text(self.part['slice'][name]) for name in ('ledger_id', 'event_id'))

    def withdrawn(self):
        return self.periods[-1] if self.periods and self.periods[-1].end is None else None


class Action:
    def __init__(self, rec, grant):
        self.rec, self.id, self.event, self.grant = rec, rec.id, rec.event, grant
        self.action, self.chain = rec.event['authorization']['action'], grant.chain if grant else []
        self.at = instant(rec.event['occurred_at'])
        self.reserved, self.until = vector(self.action.get('meter_reservation')), optional(self.action, 'expires_at')
        self.held, self.spent, self.begun, self.start_index, self.starts = [], False, None, None, set()
        self.approvals, self.needed, self.time, self.authority, self.settlement = [], [], None, False, None


class Approval:
    def __init__(self, rec, grant, signers):
        self.rec, self.event, self.grant, self.signers = rec, rec.event, grant, signers
        self.principal, self.at = rec.event['principal_id'], instant(rec.event['occurred_at'])
        self.until, self.limit = optional(rec.event, 'expires_at'), vector(rec.event.get('meter_limit'))
        self.used_by, self.taken_back, self.counts = None, False, False

    def is_for(self, action):
        mine, theirs = self.event, action.action
        return self.counts and mine['decision'] == 'approve' and self.grant in action.chain \
            and mine['tool_name'] == theirs['tool_name'] and mine['tool_params_digest'] == theirs['tool_params_digest']


class Start:
    def __init__(self, rec, target):
        self.rec, self.target = rec, target
        self.principal, self.tool = rec.event['principal_id'], rec.event['tool_name']


class Rules:
    """What a verifier knows of grants. `self.find(code, rec, pointer, cause)` tells of a finding."""

    def begin_rules(self):
        self.grants, self.actions, self.approvals, self.starts = {}, {}, {}, {}
        self.withdrawals, self.requests, self.slices, self.latest = [], {}, {}, None
        self.imported, self.needs_authority, self.was_settled = False, False, False

    def apply_rules(self, rec):
        event, kind = rec.event, rec.event['event_type']
        at = instant(event['occurred_at'])
        if self.latest is not None and at < self.latest:
            self.find('TIME_REGRESSION', rec, '/event/occurred_at', '')
        self.latest = at if self.latest is None else max(at, self.latest)
        judge = getattr(self, '_' + kind, None) if kind in (
            'authorization', 'execution', 'adjustment', 'approval', 'revocation') else None
        if judge:
            judge(rec, event)
        elif kind == 'x.northroot.start':
            self._start(rec, event)

    def _lossy(self, rec, meters, place):
        for index, meter in enumerate(meters or ()):
            if meter['amount']['t'] == 'f64':
                self.find('QUANTITY_LOSSY', rec, f'{place}/{index}/amount')
                return

    def _grant_link(self, rec, id_, place, is_allow=True):
        """-> the earlier allowed grant, or None."""
        text = digest_text(id_)
        claim = self.ids.get(text)
        if claim is None:
            self.find('GRANT_NOT_FOUND', rec, place, text)
        elif not claim.ok or claim.type != 'authorization' or claim.event['authorization']['kind'] != 'grant':
            self.find('GRANT_NOT_A_GRANT', rec, place, text)
        elif claim.event['decision'] == 'deny':
            if is_allow:
                self.find('GRANT_DENIED', rec, place)
        else:
            return self.grants[text]
        return None

    # Authorizations

    def _authorization(self, rec, event):
        part, is_allow, here = event['authorization'], event['decision'] == 'allow', '/event/authorization'
        is_action = part['kind'] == 'action'
        body = part['action'] if is_action else part.get('bounds', {})
        if is_allow:
            for index, check in enumerate(event.get('checks', ())):
                if check['result'] == 'fail':
                    self.find('ALLOW_WITH_FAILED_CHECK', rec, f'/event/checks/{index}/result')
                    break
        status = event.get('hygiene', {}).get('status')
        if status == 'Invalid' and is_allow:
            self.find('HYGIENE_NOT_OK', rec, '/event/hygiene/status')
        if status in ('Lossy', 'Ambiguous'):
            self.find('HYGIENE_LOSSY', rec, '/event/hygiene/status')
        grant = None
        if 'grant_event_id' in part:
            grant = self._grant_link(rec, part['grant_event_id'], here + '/grant_event_id', is_allow)
        if is_action:
            self._lossy(rec, body.get('meter_reservation'), here + '/action/meter_reservation')
        else:
            for name in ('meter_caps', 'action_caps', 'rate_limits'):
                self._lossy(rec, body.get(name), f'{here}/bounds/{name}')
            for index, rule in enumerate(body.get('approvals', ())):
                self._lossy(rec, rule.get('above'), f'{here}/bounds/approvals/{index}/above')
        action = Action(rec, grant) if is_action and is_allow else None
        if is_action:
            self._name_approvals(rec, body.get('approval_event_ids', ()), action)
        rec.denied = not is_allow
        if not is_allow:
            return
        at = instant(event['occurred_at'])
        if grant:
            if is_action and event['principal_id'] != grant.principal:
                self.find('PRINCIPAL_MISMATCH', rec, '/event/principal_id')
            if at < grant.at:
                self.find('AUTHORIZATION_BEFORE_GRANT', rec, '/event/occurred_at')
            self._intents(rec, event['intents'], grant)
        if is_action:
            self._allow_action(rec, action, at)
        else:
            self._allow_grant(rec, Grant(rec, grant))

    def _intents(self, rec, mine, grant):
        theirs = grant.event['intents']
        if mine['intent_digest'] == theirs['intent_digest']:
            return
        place = '/event/intents/user_intent_digest'
        if 'user_intent_digest' not in mine:
            self.find('INTENT_UNLINKED', rec, place, grant.id, related=grant.rec)
        elif mine['user_intent_digest'] != theirs.get('user_intent_digest', theirs['intent_digest']):
            self.find('INTENT_MISMATCH', rec, place)

    def _allow_grant(self, rec, grant):
        here = '/event/authorization'
        if grant.parent:
            self._delegation(rec, grant, grant.parent)
            listed = grant.parent.bounds.get('resources')
            if listed and any(resource not in listed for resource in grant.bounds.get('resources', ())):
                self.find('RESOURCE_NOT_GRANTED', rec, here + '/bounds/resources', related=grant.parent.rec)
            if any(above.withdrawn() or above.slice and self.slices[above.slice].settled for above in grant.parent.chain):
                self.find('GRANT_REVOKED', rec, here + '/grant_event_id')
        self.imported |= any(above.imported for above in grant.chain[1:])
        self.grants[grant.id] = grant
        if grant.slice:
            if grant.slice in self.slices:
                self.find('SLICE_REUSED', rec, here + '/slice/event_id')
            self.slices.setdefault(grant.slice, grant)
            self._slice(rec, grant)

    def _delegation(self, rec, grant, parent):
        def tell(place):
            self.find('DELEGATION_EXCEEDED', rec, '/event/authorization/' + place)

        mine, theirs = grant.bounds, parent.bounds
        # The whole line of ancestors, not the nearest 32 alone.
        above, distance, is_deep = parent, 1, grant.depth > 32
        while above:
            is_deep |= above.bounds.get('max_delegation_depth', distance) < distance
            above, distance = above.parent, distance + 1
        if is_deep:
            tell('grant_event_id')
        for index, tool in enumerate(mine['allowed_tools']):
            if not any(covers(pattern, tool) for pattern in theirs['allowed_tools']):
                tell(f'bounds/allowed_tools/{index}')
                break
        for unit, account in parent.accounts.items():
            if unit not in grant.accounts or grant.accounts[unit].cap > account.cap:
                tell('bounds/meter_caps')
        for unit, cap in parent.action_caps.items():
            if unit not in grant.action_caps or grant.action_caps[unit] > cap:
                tell('bounds/action_caps')
        if parent.from_ is not None and (grant.from_ is None or grant.from_ < parent.from_):
            tell('bounds/not_before')
        if parent.until is not None and (grant.until is None or grant.until > parent.until):
            tell('bounds/expires_at')
        for unit, seconds, limit, _ in parent.rates:
            if not any(rate[:2] == (unit, seconds) and rate[2] <= limit for rate in grant.rates):
                tell('bounds/rate_limits')
        if parent.limit is not None and (grant.limit is None or grant.limit > parent.limit):
            tell('bounds/concurrency_limit')
        if 'output_mode' in theirs and (
                'output_mode' not in mine or MODES.index(mine['output_mode']) > MODES.index(theirs['output_mode'])):
            tell('bounds/output_mode')

    def _name_approvals(self, rec, ids, action):
        for index, id_ in enumerate(ids):
            text, place = digest_text(id_), f'/event/authorization/action/approval_event_ids/{index}'
            claim, approval = self.ids.get(text), self.approvals.get(text)
            if claim is None:
                self.find('APPROVAL_NOT_FOUND', rec, place, text)
            elif approval is None:
                self.find('APPROVAL_NOT_AN_APPROVAL', rec, place, text)
            elif action and approval.is_for(action):
                if approval.used_by:
                    self.find('APPROVAL_REUSED', rec, place)
                else:
                    approval.used_by = rec.id
                    action.approvals.append(approval)

    def _allow_action(self, rec, action, at):
        here = '/event/authorization/action'
        tool, chain = action.action['tool_name'], action.chain
        if any(not allows(grant.bounds['allowed_tools'], tool) for grant in chain):
            self.find('TOOL_NOT_ALLOWED', rec, here + '/tool_name')
        self._within(rec, chain, at, '/event/occurred_at', True)
        for index, (unit, value) in enumerate(action.reserved.items()):
            place = f'{here}/meter_reservation/{index}/amount'
            for grant in chain:
                if value > grant.action_caps.get(unit, value):
                    self.find('ACTION_CAP_EXCEEDED', rec, place)
            self._uncapped(rec, chain, unit, value, place)
            for grant in chain:
                account = grant.accounts.get(unit)
                if account is None:
                    continue
                if not fits(account.reserved + value):
                    self.find('QUANTITY_INVALID', rec, place)
                    continue
                account.reserved += value
                action.held.append((account, value))
                if value > 0 and account.used + account.reserved > account.cap:
                    self.find('RESERVATION_OVER_CAP', rec, place)
        for index, (unit, value) in enumerate(action.reserved.items()):
            if any(value > approval.limit.get(unit, value) for approval in action.approvals):
                self.find('APPROVAL_EXCEEDED', rec, f'{here}/meter_reservation/{index}/amount')
        action.time, action.authority = max(at, self.clock or at), self.authority
        missing = False
        for position, grant in enumerate(chain):
            for rule, above in grant.rules:
                if any_matches(rule['tools'], tool) and not (above is not None and all(
                        unit in action.reserved and action.reserved[unit] <= most for unit, most in above.items())):
                    action.needed.append(rule)
                    missing |= not self._approved(action, rule, chain[:position + 1])
        if missing:
            self.find('APPROVAL_MISSING', rec, here + '/approval_event_ids')
        if any(grant.withdrawn() or grant.slice and self.slices[grant.slice].settled for grant in chain):
            self.find('GRANT_REVOKED', rec, '/event/authorization/grant_event_id')
        if 'request_key' in action.action:
            key = (rec.event['principal_id'], action.grant.root.id if action.grant else None, action.action['request_key'])
            earlier = self.requests.get(key)
            if earlier and not earlier.own_invalid:
                self.find('REQUEST_REPEATED', rec, here + '/request_key')
            else:
                self.requests[key] = rec
        self.imported |= self._is_imported(action)
        self.actions[action.id] = action

    def _is_imported(self, action):
        return any(grant.imported for grant in action.chain) or any('source' in approval.event for approval in action.approvals)

    def _approved(self, action, rule, grants):
        people, keys = set(), set()
        for approval in action.approvals:
            if approval.taken_back or approval.grant not in grants or not any(
                    matches(pattern, approval.principal) for pattern in rule['approvers']):
                continue
            if approval.principal in (grant.principal for grant in grants):
                continue
            if approval.until is not None and action.time >= approval.until:
                continue
            if 'max_age_s' in rule and abs(action.time - approval.at) >= rule['max_age_s'] * 10**9:
                continue
            counting = [key.id for key in approval.signers if 'authority' in key.roles or not any(
                key.covers(grant.principal) for grant in grants)]
            if action.authority and not counting:
                continue
            people.add(approval.principal)
            keys.update(counting)
        count = rule.get('count', 1)
        return len(people) >= count and (not action.authority or len(keys) >= count)

    def _within(self, rec, chain, at, place, with_expiry):
        if any(grant.from_ is not None and at < grant.from_ for grant in chain):
            self.find('GRANT_NOT_YET_VALID', rec, place)
        if with_expiry and any(grant.until is not None and at >= grant.until for grant in chain):
            self.find('GRANT_EXPIRED', rec, place)

    def _uncapped(self, rec, chain, unit, value, place):
        if value > 0 and chain and unit not in MEASURED and not any(unit in grant.accounts for grant in chain):
            self.find('METER_UNCAPPED', rec, place, f'{chain[0].id} {unit}', related=chain[0].rec)

    # Slices

    def _slice(self, rec, grant):
        parent = self.parents.get(grant.slice[0])
        if parent is None:
            return
        action, here = parent.actions.get(grant.slice[1]), '/event/authorization/'
        if action is None or action.action['tool_name'] != SLICE or not action.begun or action.rec.invalid \
                or action.rec.violation:
            self.find('SLICE_NOT_FOUND', rec, here + 'slice/event_id')
            return
        grant.state = []
        digest = b64url(sha(canonical({'ledger_id': self.ledger_id})))
        if action.action['tool_params_digest'] != {'alg': 'sha-256', 'b64': digest}:
            self.find('SLICE_MISMATCH', rec, here + 'slice/event_id')
        if action.event['principal_id'] != grant.principal:
            self.find('SLICE_MISMATCH', rec, '/event/principal_id')
        units = dict.fromkeys([*action.reserved, *(unit for above in action.chain for unit in above.accounts)])
        for unit in units:
            if unit not in grant.accounts:
                self.find('SLICE_EXCEEDED', rec, here + 'bounds/meter_caps')
        for index, (unit, account) in enumerate(grant.accounts.items()):
            if account.cap > action.reserved.get(unit, 0):
                self.find('SLICE_EXCEEDED', rec, f'{here}bounds/meter_caps/{index}/amount')
        if action.until is not None and (grant.until is None or grant.until > action.until):
            self.find('SLICE_EXCEEDED', rec, here + 'bounds/expires_at')

    def _settlement(self, grant):
        parent = self.parents.get(grant.slice[0]) if grant.state is not None else None
        return parent.actions[grant.slice[1]].settlement if parent else None

    def settle_slices(self, rec):
        """At a checkpoint: what is open under the slices that it settles, and what was used."""
        digest = {'alg': 'sha-256', 'b64': b64url(sha(rec.event['note'].encode()))}
        for grant in self.slices.values():
            settlement = self._settlement(grant)
            if settlement is None or grant.settled or settlement.get('output_digest') != digest:
                continue
            grant.settled, period, stated = True, grant.withdrawn(), vector(settlement['meter_used'])
            is_open = any(not action.spent and grant in action.chain for action in self.actions.values()) \
                or any(grant in start.target.chain for start in self.starts.values())
            if not (period and period.is_final and period.stop is not None) or is_open:
                grant.state.append('open')
            used = {unit: account.used for unit, account in grant.accounts.items()}
            grant.state.extend(unit for unit in {**used, **stated} if used.get(unit, 0) != stated.get(unit, 0))

    def end_slices(self):
        for grant in self.grants.values():
            if grant.slice is None or self.slices[grant.slice] is not grant or self._settlement(grant) is None:
                continue
            for _ in grant.state if grant.settled else ('no checkpoint',):
                self.find('SLICE_MISMATCH', grant.rec, '/event/authorization/slice/event_id')

    # Executions

    def _execution(self, rec, event):
        used = vector(event['meter_used'])
        self._lossy(rec, event['meter_used'], '/event/meter_used')
        began, ended, occurred = optional(event, 'started_at'), optional(event, 'ended_at'), instant(event['occurred_at'])
        if began is not None and ended is not None and ended < began:
            self.find('TIMESTAMP_INVALID', rec, '/event/ended_at')
        if began is not None and began > occurred:
            self.find('TIME_INCONSISTENT', rec, '/event/started_at')
        text = digest_text(event['auth_event_id'])
        claim = self.ids.get(text)
        rec.under = []
        if claim is None:
            rec.invalid = rec.own_invalid = True
            self.pending.setdefault(text, []).append(rec)
            return
        if claim.type != 'authorization' or not claim.ok:
            self.find('AUTH_NOT_AN_AUTHORIZATION', rec, '/event/auth_event_id', text)
            return
        has_output = any(name in event for name in ('output_digest', 'output_ref')) or bool(event.get('resources_touched'))
        is_failure = event['outcome'] == 'failure' and not has_output
        is_release = is_failure and event['error_code'] == 'ABANDONED' and not used and (
            ended is None or ended == began)
        part = claim.event['authorization']
        if claim.event['decision'] == 'deny':
            is_blocked = is_failure and not any(used.values())
            self._compare(rec, event, claim.event, is_blocked)
            if is_blocked:
                rec.denied = True
            else:
                self.find('EXECUTION_UNDER_DENY', rec, '/event/auth_event_id')
            return
        action = self.actions[text] if part['kind'] == 'action' else None
        target = action or self.grants[text]
        is_reused = action is not None and action.spent
        start = self.starts.get(digest_text(event.get('prev_event_id')))
        if start and start.target is not target:
            start = None
        is_exempt = start and start.principal == event['principal_id'] and start.tool == event['tool_name']
        if is_reused:
            self.find('AUTHORIZATION_REUSED', rec, '/event/auth_event_id', text)
        else:
            self._compare(rec, event, claim.event, is_release and action)
        if action and action.action['tool_name'] == SLICE:
            self.was_settled = True
            if not is_release and action.settlement is None:
                action.settlement = event
        own = action if action and not is_reused else None
        self._use(rec, event, own, target, used, is_release and own, is_failure)
        self._end_of_execution(rec, event, own, target, start if is_exempt else None, is_release and own)
        if start:
            self._close(start)
        if own:
            own.spent = True
            for other in list(own.starts):
                self._close(other)

    def _compare(self, rec, event, authorization, is_excused):
        if event['principal_id'] != authorization['principal_id']:
            self.find('PRINCIPAL_MISMATCH', rec, '/event/principal_id')
        if event['intents']['intent_digest'] != authorization['intents']['intent_digest']:
            self.find('INTENT_MISMATCH', rec, '/event/intents/intent_digest')
        action = authorization['authorization'].get('action')
        if action is None:
            return
        if event['tool_name'] != action['tool_name']:
            self.find('TOOL_MISMATCH', rec, '/event/tool_name')
        if 'tool_params_digest' not in event:
            if not is_excused:
                self.find('EVIDENCE_MISSING', rec, '/event/tool_params_digest')
        elif event['tool_params_digest'] != action['tool_params_digest']:
            self.find('TOOL_PARAMS_MISMATCH', rec, '/event/tool_params_digest')

    def _use(self, rec, event, own, target, used, is_release, is_failure):
        """Findings 11 to 16: `own` is the action that this execution spends."""
        chain = rec.under = target.chain
        time_place = '/event/started_at' if 'started_at' in event else '/event/occurred_at'
        at = instant(event.get('started_at', event['occurred_at']))
        is_settling = own and own.action['tool_name'] == SLICE and not is_release
        is_free = is_release or is_settling
        reserved = own.reserved if own else {}
        if is_release and own.begun:
            self.find('RELEASE_OF_STARTED', rec, '/event/error_code', related=own.begun)
        if any(not allows(grant.bounds['allowed_tools'], event['tool_name']) for grant in chain):
            self.find('TOOL_NOT_ALLOWED', rec, '/event/tool_name')
        if any(at < before.at for before in [*([own] if own else ()), *chain]):
            self.find('EXECUTION_BEFORE_AUTHORIZATION', rec, time_place)
        self._within(rec, chain, at, time_place, not is_free)
        if own and own.until is not None and at >= own.until and not is_free:
            self.find('ACTION_EXPIRED', rec, time_place)
        for index, (unit, value) in enumerate(used.items()):
            place = f'/event/meter_used/{index}/amount'
            if value > reserved.get(unit, value):
                self.find('RESERVATION_EXCEEDED', rec, place)
            for grant in chain:
                if value > grant.action_caps.get(unit, value):
                    self.find('ACTION_CAP_EXCEEDED', rec, place)
            if unit not in reserved:
                self._uncapped(rec, chain, unit, value, place)
        silent = {}
        if own and (not is_failure or is_release and bool(own.begun)):
            silent = {unit: value for unit, value in reserved.items() if unit not in used and value > 0}
        for account, value in own.held if own else ():
            account.reserved -= value
        total, places = {**used, **silent}, {unit: index for index, unit in enumerate(used)}
        order = [*(unit for unit in reserved if unit in total), *(unit for unit in used if unit not in reserved)]
        bases = {unit: event.get('meter_basis_by_unit', {}).get(unit, event.get('meter_basis')) for unit in used}
        for grant in chain:
            for unit in order:
                account, value = grant.accounts.get(unit), total[unit]
                place = f'/event/meter_used/{places[unit]}/amount' if unit in places else '/event/meter_used'
                is_estimate = unit in silent or bases[unit] == 'estimated'
                if account is not None:
                    self._count(rec, account, value, place, is_estimate, value > reserved.get(unit, 0))
        for unit in silent if not is_release else ():
            if unit not in MEASURED:
                cause = f'{chain[0].id if chain else ""} {unit}'
                self.find('METER_UNREPORTED', rec, '/event/meter_used', cause, related=own.rec)
        if not is_release:
            for grant in chain:
                grant.executions += 1
        if not is_free:
            self._rates(rec, chain, total, at, time_place)
            self._concurrency(rec, event, chain)

    def _count(self, rec, account, value, place, is_estimate, with_reserved):
        if not fits(account.used + value) or is_estimate and not fits(account.estimated + value):
            self.find('QUANTITY_INVALID', rec, place)
            return
        account.used += value
        if is_estimate:
            account.estimated += value
        over = account.used + (account.reserved if with_reserved else 0)
        if value > 0 and over > account.cap:
            self.find('METER_CAP_EXCEEDED', rec, place)

    def _rates(self, rec, chain, total, at, place):
        for grant in chain:
            for unit, seconds, limit, uses in grant.rates:
                value = Fraction(1) if unit == 'calls' else total.get(unit, Fraction(0))
                if value == 0:
                    continue
                span = seconds * 10**9
                near = uses[bisect_left(uses, (at - span + 1, 0)):bisect_left(uses, (at + span, 0))]
                near.insert(bisect_left(near, (at, 0)), (at, value))
                totals, is_fit = [], True
                for end, _ in near:
                    if end >= at:
                        parts = [part for time, part in near if end - span < time <= end]
                        is_fit &= lcm(*(part.denominator for part in parts)) < 10**400
                        totals.append(sum(parts))
                if not is_fit:
                    self.find('QUANTITY_INVALID', rec, place)
                    continue
                insort(uses, (at, value))
                if max(totals) > limit:
                    self.find('RATE_LIMIT_EXCEEDED', rec, place)

    def _concurrency(self, rec, event, chain):
        if all(grant.limit is None for grant in chain):
            return
        began, ended = optional(event, 'started_at'), optional(event, 'ended_at')
        if began is None or ended is None:
            self.find('EVIDENCE_MISSING', rec, '/event/started_at' if began is None else '/event/ended_at')
            return
        if ended < began:
            return
        for grant in chain:
            if grant.limit is None:
                continue
            over = [run for run in grant.runs if _overlap(run, (began, ended))]
            grant.runs.append((began, ended))
            instants = [max(began, run[0]) for run in over]
            if any(1 + sum(_holds_at(run, at) for run in over) > grant.limit for at in [*instants, began]):
                self.find('CONCURRENCY_EXCEEDED', rec, '/event/started_at')

    def _end_of_execution(self, rec, event, own, target, start, is_release):
        """Findings 19 to 23."""
        chain, tool = target.chain, event['tool_name']
        used = vector(event['meter_used'])
        if 'output_ref' in event and any(grant.bounds.get('output_mode') == 'digest_only' for grant in chain):
            self.find('OUTPUT_MODE_EXCEEDED', rec, '/event/output_ref')
        for index, resource in enumerate(event.get('resources_touched', ())):
            grants = [one.rec for one in chain if resource not in one.bounds.get('resources', [resource])]
            if grants:
                self.find('RESOURCE_NOT_GRANTED', rec, f'/event/resources_touched/{index}', related=grants[0])
        if own:
            for index, (unit, value) in enumerate(used.items()):
                if any(value > approval.limit.get(unit, value) for approval in own.approvals):
                    self.find('APPROVAL_EXCEEDED', rec, f'/event/meter_used/{index}/amount')
        is_missing = False
        if (own or target.id in self.grants) and not is_release:
            for position, grant in enumerate(chain):
                for rule, above in grant.rules:
                    if not any_matches(rule['tools'], tool) or own and any(rule is other for other in own.needed):
                        continue
                    if above is None or any(used.get(unit, 0) > most for unit, most in above.items()):
                        is_missing |= not own or not self._approved(own, rule, chain[:position + 1])
        if is_missing:
            self.find('APPROVAL_MISSING', rec, '/event/auth_event_id')
        is_settling = own and own.action['tool_name'] == SLICE and not is_release
        if not is_release and any(
                not is_settling and self._is_stopped(grant, target, start)
                or grant.slice and self.slices[grant.slice].settled for grant in chain):
            self.find('GRANT_REVOKED', rec, '/event/auth_event_id')
        self.imported |= any(grant.imported for grant in chain) or isinstance(target, Action) and (
            'source' in target.event or self._is_imported(target))

    def _is_stopped(self, grant, target, start):
        if isinstance(target, Action):
            return any(period.stop is not None and (period.end is None or target.rec.index < period.end)
                       and not (start and start.rec.index < period.stop) for period in grant.periods)
        period = grant.withdrawn()
        return bool(period) and not (start and start.rec.index < period.since)

    def _close(self, start):
        self.starts.pop(start.rec.id, None)
        start.target.starts.discard(start)

    # Adjustments, approvals, revocations, starts

    def _adjustment(self, rec, event):
        is_credit, meters = event['direction'] == 'credit', vector(event['meters'])
        self._lossy(rec, event['meters'], '/event/meters')
        grant = self._grant_link(rec, event['grant_event_id'], '/event/grant_event_id')
        if 'execution_event_id' in event:
            claim = self.ids.get(digest_text(event['execution_event_id']))
            if claim is None or not claim.ok or claim.type != 'execution':
                self.find('EXECUTION_NOT_FOUND', rec, '/event/execution_event_id')
            elif grant and grant not in claim.under:
                self.find('EXECUTION_NOT_UNDER_GRANT', rec, '/event/execution_event_id')
        if not grant:
            return
        chain = grant.chain
        is_void = is_credit and any(event['principal_id'] == above.principal for above in chain)
        if is_void:
            self.find('SELF_CREDIT', rec, '/event/principal_id')
        places = {unit: f'/event/meters/{index}/amount' for index, unit in enumerate(meters)}
        for unit in meters:
            if unit not in grant.accounts:
                self.find('METER_UNCAPPED', rec, places[unit], f'{grant.id} {unit}', related=grant.rec)
        meters = {unit: value for unit, value in meters.items() if unit in grant.accounts}
        touched = [(unit, value, above.accounts[unit]) for unit, value in meters.items()
                   for above in chain if unit in above.accounts]
        if not is_credit:
            for unit, value, account in touched:
                self._count(rec, account, value, places[unit], event.get('meter_basis') == 'estimated', True)
            return
        for unit, value in meters.items():
            if any(value > account.used for name, _, account in touched if name == unit):
                self.find('ADJUSTMENT_EXCEEDED', rec, places[unit])
                is_void = True
        for unit, value, account in touched:
            if not is_void and not fits(account.used - value):
                self.find('QUANTITY_INVALID', rec, places[unit])
        if is_void or rec.own_invalid or rec.is_overdue:
            return
        for _, value, account in touched:
            account.used -= value
        if 'source' in event:
            grant.imported = True

    def _approval(self, rec, event):
        self._lossy(rec, event.get('meter_limit'), '/event/meter_limit')
        grant = self._grant_link(rec, event['grant_event_id'], '/event/grant_event_id')
        if 'request_event_id' in event:
            text = digest_text(event['request_event_id'])
            claim = self.ids.get(text)
            if claim is None:
                self.find('AUTH_NOT_FOUND', rec, '/event/request_event_id', text)
            elif claim.type != 'authorization' or not claim.ok:
                self.find('AUTH_NOT_AN_AUTHORIZATION', rec, '/event/request_event_id', text)
        approval = self.approvals[rec.id] = Approval(rec, grant, rec.counting)
        approval.counts = not rec.own_invalid and not rec.is_overdue
        if event['decision'] == 'reject' and approval.counts:
            for other in self.approvals.values():
                if other.used_by is None and other.principal == approval.principal and other.grant is grant and all(
                        other.event[name] == event[name] for name in ('tool_name', 'tool_params_digest')):
                    other.taken_back = True

    def _revocation(self, rec, event):
        grant = self._grant_link(rec, event['grant_event_id'], '/event/grant_event_id')
        if rec.own_invalid or rec.is_overdue:
            return
        if not grant:
            return
        self.withdrawals.append(rec)
        period, effect, is_stop = grant.withdrawn(), event['effect'], event.get('in_flight') == 'stop'
        by_authority = any('authority' in key.roles for key in rec.counting)
        if effect == 'resume':
            if period and not period.is_final:
                period.end = rec.index
                if 'source' in event:
                    grant.imported = True
        elif not period:
            stop = rec.index if is_stop else None
            grant.periods.append(Period(rec, effect == 'revoke', stop, by_authority))
        else:
            period.is_final |= effect == 'revoke'
            period.by_authority |= by_authority
            if is_stop and period.stop is None:
                period.stop = rec.index

    def _start(self, rec, event):
        for name, form in START.items():
            if name not in event or not holds(COMMON + form, event[name]):
                return
        recorder, params = event.get('recorder'), event.get('tool_params_digest')
        if not isinstance(recorder, str) or not 16 <= len(recorder) <= 128 or not holds(COMMON + 'profile_id', recorder):
            return
        if 'tool_params_digest' in event and not holds(COMMON + 'digest', params):
            return
        text = digest_text(event['auth_event_id'])
        target = self.actions.get(text) or self.grants.get(text)
        if target is None or target.event['principal_id'] != event['principal_id'] or rec.own_invalid or rec.is_overdue:
            return
        earlier = self.starts.get(digest_text(event.get('prev_event_id')))
        if earlier and earlier.target is not target:
            earlier = None
        others = len(target.starts) - (earlier is not None)
        if isinstance(target, Action):
            action = target.action
            if target.spent or event['tool_name'] != action['tool_name'] or params != action['tool_params_digest'] or others:
                return
            extra = target.reserved
            target.begun = rec
            if target.start_index is None:
                target.start_index = rec.index
        else:
            if others >= min(1000, target.limit or 1000):
                return
            extra = vector(earlier.rec.event['meter_known']) if earlier else {}
        if earlier:
            self._close(earlier)
            for grant in target.chain:
                for unit, value in extra.items():
                    if unit in grant.accounts:
                        self._count(rec, grant.accounts[unit], value, '/event/prev_event_id', True, True)
        start = self.starts[rec.id] = Start(rec, target)
        target.starts.add(start)


def _overlap(a, b):
    return any(_holds_at(a, at) and _holds_at(b, at) for at in (a[0], b[0]))


def _holds_at(run, at):
    return run[0] == at or run[0] <= at < run[1]
