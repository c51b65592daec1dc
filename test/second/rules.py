"""Step 11: the rules on authorizations, executions and what corrects them (verification.md, rules 1 to 18)."""
from bisect import bisect_left
from fractions import Fraction
from math import lcm
from types import SimpleNamespace
from canonical import canonical
from keys import b64url, matches, sha
from shape import COMMON, amount, digest_text, holds, instant, window

SLICE, MEASURED, G, USER = 'northroot.slice', ('calls', 'time.ms'), 'authorization/', 'user_intent_digest'
MODES = ['digest_only', 'allow_contentref', 'allow_inline']
START = {'intents': 'intents', 'auth_event_id': 'sha256_digest', 'tool_name': 'tool_name', 'started_at': 'timestamp',
         'meter_known': 'meter_vector', 'recorder': 'profile_id'}

def fits(value):
    """A denominator of at most 400 digits."""
    return value.denominator < 10**400
def vector(meters):
    return {meter['unit']: amount(meter['amount']) for meter in meters or ()}
def placed(amounts, place):
    """-> (place, unit, value) of each meter."""
    return [(f'{place}/{index}/amount', *one) for index, one in enumerate(amounts.items())]
def optional(event, name):
    return instant(event[name]) if name in event else None
def digest_of(data):
    return {'alg': 'sha-256', 'b64': b64url(sha(data))}
def any_matches(patterns, tool):
    return any(pattern == tool or pattern != SLICE and matches(pattern, tool) for pattern in patterns)
def forbids(grant, tool):
    patterns = grant.bounds['allowed_tools']
    return tool not in patterns and (tool == SLICE or not any_matches(patterns, tool))
def covers(mine, theirs):
    """Whether one pattern allows all that the other does."""
    return mine == theirs or mine.endswith('*') and theirs != SLICE and theirs.startswith(mine[:-1]) and len(theirs) >= len(mine)
def is_on(run, at):
    return run[0] == at or run[0] <= at < run[1]

class Grant:
    def __init__(self, rec, parent):
        self.rec, self.id, self.event, self.principal, self.parent = rec, rec.id, rec.event, rec.event['principal_id'], parent
        bounds = self.bounds = rec.event['authorization']['bounds']
        self.chain = [self, *(parent.chain[:31] if parent else ())]
        self.depth, self.root = (parent.depth + 1, parent.root) if parent else (1, self)
        self.accounts = {unit: SimpleNamespace(cap=cap, used=Fraction(0), reserved=Fraction(0), estimated=Fraction(0))
                         for unit, cap in vector(bounds['meter_caps']).items()}
        self.since, self.until = optional(bounds, 'not_before'), optional(bounds, 'expires_at')
        self.caps = vector(bounds.get('action_caps'))
        self.rates = [(*window(meter['unit']), amount(meter['amount']), []) for meter in bounds.get('rate_limits', ())]
        self.limit, self.runs = int(bounds['concurrency_limit']['v']) if 'concurrency_limit' in bounds else None, []
        self.rules = [(rule, vector(rule['above']) if 'above' in rule else None) for rule in bounds.get('approvals', ())]
        self.periods, self.starts, self.executions, self.imported = [], {}, 0, 'source' in rec.event
        named, self.settled, self.state = rec.event['authorization'].get('slice'), False, None
        self.slice = named and (digest_text(named['ledger_id']), digest_text(named['event_id']))
    def withdrawn(self):
        return self.periods[-1] if self.periods and self.periods[-1].end is None else None
    def needed(self, tool):
        """The rules of the whole chain on a tool: (rule, `above`, the grants whose principals may not approve)."""
        return [(rule, above, self.chain[:index + 1]) for index, grant in enumerate(self.chain) for rule, above in grant.rules
                if any_matches(rule['tools'], tool)]

class Action:
    def __init__(self, rec, grant):
        self.rec, self.id, self.event, self.grant, self.chain = rec, rec.id, rec.event, grant, grant.chain if grant else []
        self.action = rec.event['authorization']['action']
        self.reserved, self.until = vector(self.action.get('meter_reservation')), optional(self.action, 'expires_at')
        self.held, self.spent, self.begun, self.start_index, self.starts = [], False, None, None, {}
        self.approvals, self.needed, self.settlement, self.is_slice = [], [], None, self.action['tool_name'] == SLICE

class Approval:
    def __init__(self, rec, grant):
        self.rec, self.event, self.grant, self.principal = rec, rec.event, grant, rec.event['principal_id']
        self.until, self.limit = optional(rec.event, 'expires_at'), vector(rec.event.get('meter_limit'))
        self.used_by, self.taken_back, self.counts = None, False, rec.counts()
    def is_for(self, action):
        return self.counts and self.event['decision'] == 'approve' and self.grant in action.chain and all(
            self.event[name] == action.action[name] for name in ('tool_name', 'tool_params_digest'))

class Rules:
    """What a verifier knows of grants. `self.find` tells of a finding, here always at the record that is judged."""
    def begin_rules(self):
        self.grants, self.actions, self.approvals, self.starts, self.requests, self.slices = {}, {}, {}, {}, {}, {}
        self.withdrawals, self.latest, self.imported, self.needs_authority, self.was_settled = [], None, False, False, False
    def tell(self, is_so, code, place=None, cause=None, related=None, cls=None):
        if is_so: self.find(code, self.rec, place, cause, cls, related=related)
        return bool(is_so)
    def apply_rules(self, rec, event):
        rec.at, kind = instant(event['occurred_at']), event['event_type']
        self.tell(self.latest is not None and rec.at < self.latest, 'TIME_REGRESSION', 'occurred_at', '')
        self.latest = rec.at if self.latest is None else max(rec.at, self.latest)
        if kind in ('authorization', 'execution', 'adjustment', 'approval', 'revocation', 'x.northroot.start'):
            getattr(self, '_' + kind.rpartition('.')[2])(rec, event)
    def _lossy(self, meters, place):
        index = next((index for index, meter in enumerate(meters or ()) if meter['amount']['t'] == 'f64'), None)
        self.tell(index is not None, 'QUANTITY_LOSSY', f'{place}/{index}/amount')
    def _grant_link(self, id_, place, is_allow=True):
        """-> the earlier allowed grant, or None."""
        text = digest_text(id_)
        claim = self.ids.get(text)
        if not self.tell(claim is None, 'GRANT_NOT_FOUND', place, text):
            is_grant = claim.ok and claim.type == 'authorization' and claim.event['authorization']['kind'] == 'grant'
            if not self.tell(not is_grant, 'GRANT_NOT_A_GRANT', place, text):
                self.tell(is_allow and text not in self.grants, 'GRANT_DENIED', place)
        return self.grants.get(text)
    def _authorization(self, rec, event):
        part, is_allow, tell, grant = event['authorization'], event['decision'] == 'allow', self.tell, None
        is_action = part['kind'] == 'action'
        body, here = (part['action'], G + 'action/') if is_action else (part.get('bounds', {}), G + 'bounds/')
        failed = next((index for index, check in enumerate(event.get('checks', ())) if check['result'] == 'fail'), None)
        tell(is_allow and failed is not None, 'ALLOW_WITH_FAILED_CHECK', f'checks/{failed}/result')
        status = event.get('hygiene', {}).get('status')
        tell(is_allow and status == 'Invalid', 'HYGIENE_NOT_OK', 'hygiene/status')
        tell(status in ('Lossy', 'Ambiguous'), 'HYGIENE_LOSSY', 'hygiene/status')
        if 'grant_event_id' in part: grant = self._grant_link(part['grant_event_id'], G + 'grant_event_id', is_allow)
        for name in ('meter_caps', 'action_caps', 'rate_limits', 'meter_reservation'):
            self._lossy(body.get(name), here + name)
        for index, rule in enumerate(body.get('approvals', ())):
            self._lossy(rule.get('above'), f'{here}approvals/{index}/above')
        action = Action(rec, grant) if is_action and is_allow else None
        self._name_approvals(rec, body.get('approval_event_ids', ()), action)
        rec.denied = not is_allow
        if grant and is_allow:
            tell(is_action and event['principal_id'] != grant.principal, 'PRINCIPAL_MISMATCH', 'principal_id')
            tell(rec.at < grant.rec.at, 'AUTHORIZATION_BEFORE_GRANT', 'occurred_at')
            mine, theirs = event['intents'], grant.event['intents']
            right, is_other = theirs.get(USER, theirs['intent_digest']), mine['intent_digest'] != theirs['intent_digest']
            tell(is_other and mine.get(USER, right) != right, 'INTENT_MISMATCH', 'intents/' + USER)
            tell(is_other and USER not in mine, 'INTENT_UNLINKED', 'intents/' + USER, grant.id, grant.rec)
        if action:
            self._allow_action(rec, action, action.action['tool_name'], action.chain)
        elif is_allow:
            self._allow_grant(Grant(rec, grant), grant)
    def _allow_grant(self, grant, parent):
        if parent:
            self._delegation(grant, parent, grant.bounds, parent.bounds)
            mine, theirs = grant.bounds.get('resources', ()), parent.bounds.get('resources')
            self.tell(theirs and any(one not in theirs for one in mine), 'RESOURCE_NOT_GRANTED', G + 'bounds/resources', None, parent.rec)
            self.tell(any(map(self._is_closed, parent.chain)), 'GRANT_REVOKED', G + 'grant_event_id')
        self.imported |= any(above.imported for above in grant.chain[1:])
        self.grants[grant.id] = grant
        if grant.slice:
            self.tell(grant.slice in self.slices, 'SLICE_REUSED', G + 'slice/event_id')
            self.slices.setdefault(grant.slice, grant)
            if grant.slice[0] in self.parents:
                self._slice(grant, self.parents[grant.slice[0]].actions.get(grant.slice[1]))
    def _is_settled(self, grant):
        return bool(grant.slice and self.slices[grant.slice].settled)
    def _is_closed(self, grant):
        return bool(grant.withdrawn()) or self._is_settled(grant)
    def _delegation(self, grant, parent, mine, theirs):
        def tell(is_so, place):
            return self.tell(is_so, 'DELEGATION_EXCEEDED', G + place)
        # The whole line of ancestors, not the nearest 32 alone.
        above, distance, is_deep = parent, 1, grant.depth > 32
        while above:
            is_deep |= above.bounds.get('max_delegation_depth', distance) < distance
            above, distance = above.parent, distance + 1
        tell(is_deep, 'grant_event_id')
        any(tell(not any(covers(pattern, tool) for pattern in theirs['allowed_tools']), f'bounds/allowed_tools/{index}')
            for index, tool in enumerate(mine['allowed_tools']))
        for unit, account in parent.accounts.items():
            tell(unit not in grant.accounts or grant.accounts[unit].cap > account.cap, 'bounds/meter_caps')
        for unit, cap in parent.caps.items():
            tell(unit not in grant.caps or grant.caps[unit] > cap, 'bounds/action_caps')
        tell(parent.since is not None and (grant.since is None or grant.since < parent.since), 'bounds/not_before')
        tell(parent.until is not None and (grant.until is None or grant.until > parent.until), 'bounds/expires_at')
        for rate in parent.rates:
            tell(not any(one[:2] == rate[:2] and one[2] <= rate[2] for one in grant.rates), 'bounds/rate_limits')
        tell(parent.limit is not None and (grant.limit is None or grant.limit > parent.limit), 'bounds/concurrency_limit')
        modes = [MODES.index(bounds.get('output_mode', MODES[2])) for bounds in (mine, theirs)]
        tell('output_mode' in theirs and ('output_mode' not in mine or modes[0] > modes[1]), 'bounds/output_mode')
    def _name_approvals(self, rec, ids, action):
        for index, text in enumerate(map(digest_text, ids)):
            approval, place = self.approvals.get(text), f'{G}action/approval_event_ids/{index}'
            if not approval:
                self.tell(True, 'APPROVAL_NOT_AN_APPROVAL' if text in self.ids else 'APPROVAL_NOT_FOUND', place, text)
            elif action and approval.is_for(action) and not self.tell(approval.used_by, 'APPROVAL_REUSED', place):
                approval.used_by = rec.id
                action.approvals.append(approval)
    def _allow_action(self, rec, action, tool, chain):
        here, reserved, tell = G + 'action/', placed(action.reserved, G + 'action/meter_reservation'), self.tell
        tell(any(forbids(grant, tool) for grant in chain), 'TOOL_NOT_ALLOWED', here + 'tool_name')
        self._within(chain, rec.at, 'occurred_at', True)
        for place, unit, value in reserved:
            self._capped(chain, unit, value, place, True)
            for account in [grant.accounts[unit] for grant in chain if unit in grant.accounts]:
                if not tell(not fits(account.reserved + value), 'QUANTITY_INVALID', place):
                    account.reserved += value
                    action.held.append((account, value))
                    tell(value > 0 and account.used + account.reserved > account.cap, 'RESERVATION_OVER_CAP', place)
        self._exceeds_approval(action, reserved)
        action.time, action.authority = self.moment(rec), self.authority
        action.needed = [(rule, grants) for rule, above, grants in (action.grant.needed(tool) if chain else ())
                         if above is None or any(action.reserved.get(unit, most + 1) > most for unit, most in above.items())]
        tell(not all(self._approved(action, *one) for one in action.needed), 'APPROVAL_MISSING', here + 'approval_event_ids')
        tell(any(map(self._is_closed, chain)), 'GRANT_REVOKED', G + 'grant_event_id')
        if 'request_key' in action.action:
            key = (rec.event['principal_id'], action.grant and action.grant.root.id, action.action['request_key'])
            if not tell(key in self.requests and not self.requests[key].own_invalid, 'REQUEST_REPEATED', here + 'request_key'):
                self.requests[key] = rec
        self.imported |= self._is_imported(action)
        self.actions[action.id] = action
    def _is_imported(self, action):
        return any(grant.imported for grant in action.chain) or any('source' in approval.event for approval in action.approvals)
    def _exceeds_approval(self, action, amounts):
        for place, unit, value in amounts:
            self.tell(any(value > approval.limit.get(unit, value) for approval in action.approvals), 'APPROVAL_EXCEEDED', place)
    def _approved(self, action, rule, grants):
        people, keys, count, owners = set(), set(), rule.get('count', 1), [grant.principal for grant in grants]
        for one in action.approvals:
            counting = [key.id for key in one.rec.counting if 'authority' in key.roles or not any(map(key.covers, owners))]
            if not one.taken_back and one.grant in grants and any(matches(pattern, one.principal) for pattern in rule['approvers']) \
                    and one.principal not in owners and (one.until is None or action.time < one.until) \
                    and abs(action.time - one.rec.at) < rule.get('max_age_s', 10**12) * 10**9 and (counting or not action.authority):
                people.add(one.principal)
                keys.update(counting)
        return len(people) >= count and (not action.authority or len(keys) >= count)
    def _within(self, chain, at, place, with_expiry):
        self.tell(any(grant.since is not None and at < grant.since for grant in chain), 'GRANT_NOT_YET_VALID', place)
        self.tell(with_expiry and any(grant.until is not None and at >= grant.until for grant in chain), 'GRANT_EXPIRED', place)
    def _capped(self, chain, unit, value, place, needs_cap):
        for grant in chain: self.tell(value > grant.caps.get(unit, value), 'ACTION_CAP_EXCEEDED', place)
        if chain and needs_cap and value > 0 and unit not in MEASURED and not any(unit in grant.accounts for grant in chain):
            self.tell(True, 'METER_UNCAPPED', place, f'{chain[0].id} {unit}', chain[0].rec)
    def _slice(self, grant, action):
        tell = self.tell
        if tell(not action or not action.is_slice or not action.begun or action.rec.invalid or action.rec.violation, 'SLICE_NOT_FOUND',
                G + 'slice/event_id'):
            return
        grant.state, right = [], digest_of(canonical({'ledger_id': self.ledger_id}))
        tell(action.action['tool_params_digest'] != right, 'SLICE_MISMATCH', G + 'slice/event_id')
        tell(action.event['principal_id'] != grant.principal, 'SLICE_MISMATCH', 'principal_id')
        for unit in dict.fromkeys([*action.reserved, *(unit for above in action.chain for unit in above.accounts)]):
            tell(unit not in grant.accounts, 'SLICE_EXCEEDED', G + 'bounds/meter_caps')
        for place, unit, account in placed(grant.accounts, G + 'bounds/meter_caps'):
            tell(account.cap > action.reserved.get(unit, 0), 'SLICE_EXCEEDED', place)
        is_longer = action.until is not None and (grant.until is None or grant.until > action.until)
        tell(is_longer, 'SLICE_EXCEEDED', G + 'bounds/expires_at')
    def _settlement(self, grant):
        return self.parents[grant.slice[0]].actions[grant.slice[1]].settlement if grant.state is not None else None
    def settle_slices(self, note):
        """At a checkpoint: what is open under the slices that it settles, and what was used."""
        for grant in self.slices.values():
            settlement = self._settlement(grant)
            if settlement and not grant.settled and settlement.get('output_digest') == digest_of(note.encode()):
                grant.settled, period, stated = True, grant.withdrawn(), vector(settlement['meter_used'])
                is_open = any(grant in action.chain and not action.spent for action in self.actions.values()) \
                    or any(grant in start.target.chain for start in self.starts.values()) \
                    or not (period and period.is_final and period.stop is not None)
                used = {unit: account.used for unit, account in grant.accounts.items()}
                grant.state = ['open'] * is_open + [unit for unit in {**used, **stated} if used.get(unit, 0) != stated.get(unit, 0)]
    def end_slices(self):
        for grant in self.grants.values():
            if grant.slice and self.slices[grant.slice] is grant and self._settlement(grant):
                for _ in grant.state if grant.settled else ('no checkpoint',):
                    self.find('SLICE_MISMATCH', grant.rec, G + 'slice/event_id')
    def _execution(self, rec, event):
        used, text, tell = vector(event['meter_used']), digest_text(event['auth_event_id']), self.tell
        self._lossy(event['meter_used'], 'meter_used')
        began, ended, claim = optional(event, 'started_at'), optional(event, 'ended_at'), self.ids.get(text)
        tell(None not in (began, ended) and ended < began, 'TIMESTAMP_INVALID', 'ended_at')
        tell(began is not None and began > rec.at, 'TIME_INCONSISTENT', 'started_at')
        if claim is None:
            rec.invalid = rec.own_invalid = True
            self.pending.setdefault(text, []).append(rec)
        elif not tell(claim.type != 'authorization' or not claim.ok, 'AUTH_NOT_AN_AUTHORIZATION', 'auth_event_id', text):
            has_output = event.keys() & {'output_digest', 'output_ref'} or event.get('resources_touched')
            is_failure = event['outcome'] == 'failure' and not has_output
            if claim.event['decision'] == 'deny':
                rec.denied = is_failure and not any(used.values())
                self._compare(event, claim.event, rec.denied)
                tell(not rec.denied, 'EXECUTION_UNDER_DENY', 'auth_event_id')
            else:
                gives_back = is_failure and event['error_code'] == 'ABANDONED' and not used and ended in (None, began)
                self._judge_execution(rec, event, claim, is_failure, gives_back, rec.at if began is None else began)
    def _judge_execution(self, rec, event, claim, is_failure, gives_back, at):
        """`own` is the action that this execution spends."""
        action = self.actions.get(claim.id)
        target, own = action or self.grants[claim.id], action if action and not action.spent else None
        start = self.starts.get(digest_text(event.get('prev_event_id')))
        start = start if start and start.target is target else None
        if not self.tell(action and not own, 'AUTHORIZATION_REUSED', 'auth_event_id', claim.id):
            self._compare(event, claim.event, gives_back and action)
        if action and action.is_slice:
            self.was_settled, action.settlement = True, action.settlement or (None if gives_back else event)
        is_release, amounts = bool(gives_back and own), placed(vector(event['meter_used']), 'meter_used')
        is_settling = bool(own and own.is_slice and not is_release)
        self._use(rec, event, own, target, amounts, is_failure, is_release, is_settling, at)
        is_exempt = start and all(start.rec.event[name] == event[name] for name in ('principal_id', 'tool_name'))
        self._end_of_execution(event, own, target, amounts, start if is_exempt else None, is_release, is_settling)
        for one in [start] * bool(start) + list(own.starts.values() if own else ()): self._close(one)
        if own: own.spent = True
    def _compare(self, event, authorization, is_excused):
        action, tell = authorization['authorization'].get('action', event), self.tell
        mine, theirs = event.get('tool_params_digest'), action.get('tool_params_digest')
        tell(event['principal_id'] != authorization['principal_id'], 'PRINCIPAL_MISMATCH', 'principal_id')
        is_other = event['intents']['intent_digest'] != authorization['intents']['intent_digest']
        tell(is_other, 'INTENT_MISMATCH', 'intents/intent_digest')
        tell(event['tool_name'] != action['tool_name'], 'TOOL_MISMATCH', 'tool_name')
        tell(theirs and not mine and not is_excused, 'EVIDENCE_MISSING', 'tool_params_digest')
        tell(theirs and mine and mine != theirs, 'TOOL_PARAMS_MISMATCH', 'tool_params_digest')
    def _use(self, rec, event, own, target, amounts, is_failure, is_release, is_settling, at):
        """Findings 11 to 18."""
        is_free, reserved, tell, chain = is_release or is_settling, own.reserved if own else {}, self.tell, target.chain
        rec.under, time_place = chain, 'started_at' if 'started_at' in event else 'occurred_at'
        tell(is_release and own.begun, 'RELEASE_OF_STARTED', 'error_code', None, own and own.begun)
        tell(any(forbids(grant, event['tool_name']) for grant in chain), 'TOOL_NOT_ALLOWED', 'tool_name')
        tell(any(at < one.rec.at for one in [*([own] if own else ()), *chain]), 'EXECUTION_BEFORE_AUTHORIZATION', time_place)
        self._within(chain, at, time_place, not is_free)
        tell(own and own.until is not None and at >= own.until and not is_free, 'ACTION_EXPIRED', time_place)
        for place, unit, value in amounts:
            tell(value > reserved.get(unit, value), 'RESERVATION_EXCEEDED', place)
            self._capped(chain, unit, value, place, unit not in reserved)
        uses, silent = {unit: (value, place) for place, unit, value in amounts}, []
        if own and (not is_failure or is_release and own.begun):
            silent = [unit for unit, value in reserved.items() if unit not in uses and value > 0]
            uses.update({unit: (reserved[unit], 'meter_used') for unit in silent})
        for account, value in own.held if own else (): account.reserved -= value
        bases = {**dict.fromkeys(uses, event.get('meter_basis')), **event.get('meter_basis_by_unit', {})}
        order = [*(unit for unit in reserved if unit in uses), *(unit for unit in uses if unit not in reserved)]
        for account, unit in [(grant.accounts[unit], unit) for grant in chain for unit in order if unit in grant.accounts]:
            is_guess, is_more = unit in silent or bases[unit] == 'estimated', uses[unit][0] > reserved.get(unit, 0)
            self._count(account, *uses[unit], is_guess, is_more)
        for unit in silent if not is_release else ():
            tell(unit not in MEASURED, 'METER_UNREPORTED', 'meter_used', f'{chain[0].id if chain else ""} {unit}', own.rec)
        for grant in chain if not is_release else (): grant.executions += 1
        if not is_free:
            self.rates_of(chain, {unit: value for unit, (value, _) in uses.items()}, at, time_place)
            self._concurrency(event, [grant for grant in chain if grant.limit is not None])
    def _count(self, account, value, place, is_estimate, with_reserved):
        guess = value if is_estimate else 0
        if not self.tell(not fits(account.used + value) or not fits(account.estimated + guess), 'QUANTITY_INVALID', place):
            account.used, account.estimated = account.used + value, account.estimated + guess
            over = account.used + (account.reserved if with_reserved else 0)
            self.tell(value > 0 and over > account.cap, 'METER_CAP_EXCEEDED', place)
    def rates_of(self, chain, uses, at, place):
        for unit, seconds, limit, earlier in [rate for grant in chain for rate in grant.rates]:
            value, span = Fraction(1) if unit == 'calls' else uses.get(unit, 0), seconds * 10**9
            near = earlier[bisect_left(earlier, (at - span + 1, 0)):bisect_left(earlier, (at + span, 0))] + [(at, value)]
            windows = [[part for time, part in near if end - span < time <= end] for end, _ in near if end >= at]
            is_fit = all(lcm(*(part.denominator for part in parts)) < 10**400 for parts in windows)
            self.tell(value and not is_fit, 'QUANTITY_INVALID', place)
            self.tell(value and is_fit and max(map(sum, windows)) > limit, 'RATE_LIMIT_EXCEEDED', place)
            earlier += [(at, value)] if value and is_fit else []
            earlier.sort()
    def _concurrency(self, event, limited):
        began, ended = optional(event, 'started_at'), optional(event, 'ended_at')
        missing = 'started_at' if began is None else 'ended_at'
        if limited and not self.tell(None in (began, ended), 'EVIDENCE_MISSING', missing) and ended >= began:
            for grant in limited:
                grant.runs.append((began, ended))
                # Most overlap where one of them begins.
                starts = [one[0] for one in grant.runs if is_on((began, ended), one[0])]
                is_over = any(sum(is_on(one, at) for one in grant.runs) > grant.limit for at in starts)
                self.tell(is_over, 'CONCURRENCY_EXCEEDED', 'started_at')
    def _end_of_execution(self, event, own, target, amounts, start, is_release, is_settling):
        """Findings 19 to 23."""
        chain, used, tell = target.chain, {unit: value for _, unit, value in amounts}, self.tell
        is_secret = any(grant.bounds.get('output_mode') == 'digest_only' for grant in chain)
        tell('output_ref' in event and is_secret, 'OUTPUT_MODE_EXCEEDED', 'output_ref')
        for index, resource in enumerate(event.get('resources_touched', ())):
            grants = [grant.rec for grant in chain if resource not in grant.bounds.get('resources', [resource])]
            tell(grants, 'RESOURCE_NOT_GRANTED', f'resources_touched/{index}', None, grants and grants[0])
        if own: self._exceeds_approval(own, amounts)
        asked = chain[0].needed(event['tool_name']) if chain and (own or isinstance(target, Grant)) and not is_release else ()
        needed = [(rule, grants) for rule, above, grants in asked if not (own and any(rule is other for other, _ in own.needed))
                  and (above is None or any(used.get(unit, 0) > most for unit, most in above.items()))]
        tell(any(not own or not self._approved(own, *one) for one in needed), 'APPROVAL_MISSING', 'auth_event_id')
        is_stopped = any(self._is_settled(grant) or not is_settling and self._is_stopped(grant, target, start) for grant in chain)
        tell(not is_release and is_stopped, 'GRANT_REVOKED', 'auth_event_id')
        self.imported |= any(grant.imported for grant in chain) or isinstance(target, Action) and (
            'source' in target.event or self._is_imported(target))
    def _is_stopped(self, grant, target, start):
        """An open start before the withdrawal exempts; of an action, one before the stop."""
        froms = [one.since for one in grant.periods if one.end is None]
        if isinstance(target, Action):
            froms = [one.stop for one in grant.periods if one.stop is not None and (one.end is None or target.rec.index < one.end)]
        return any(not (start and start.rec.index < place) for place in froms)
    def _close(self, start):
        self.starts.pop(start.rec.id, None)
        start.target.starts.pop(start.rec.id, None)
    def _adjustment(self, rec, event):
        is_credit, amounts, tell = event['direction'] == 'credit', placed(vector(event['meters']), 'meters'), self.tell
        self._lossy(event['meters'], 'meters')
        grant = self._grant_link(event['grant_event_id'], 'grant_event_id')
        if 'execution_event_id' in event:
            claim, place = self.ids.get(digest_text(event['execution_event_id'])), 'execution_event_id'
            if not tell(claim is None or not claim.ok or claim.type != 'execution', 'EXECUTION_NOT_FOUND', place):
                tell(grant and grant not in claim.under, 'EXECUTION_NOT_UNDER_GRANT', place)
        chain = grant.chain if grant else []
        is_own = is_credit and any(event['principal_id'] == above.principal for above in chain)
        is_void = tell(is_own, 'SELF_CREDIT', 'principal_id')
        for place, unit, _ in amounts if grant else ():
            tell(unit not in grant.accounts, 'METER_UNCAPPED', place, f'{grant.id} {unit}', grant.rec)
        parts = [(place, value, [above.accounts[unit] for above in chain if unit in above.accounts])
                 for place, unit, value in amounts if grant and unit in grant.accounts]
        for place, value, accounts in parts if is_credit else ():
            is_void |= tell(any(value > account.used for account in accounts), 'ADJUSTMENT_EXCEEDED', place)
        touched = [(account, value, place) for place, value, accounts in parts for account in accounts]
        for account, value, place in touched:
            if is_credit:
                tell(not is_void and not fits(account.used - value), 'QUANTITY_INVALID', place)
            else:
                self._count(account, value, place, event.get('meter_basis') == 'estimated', True)
        if grant and is_credit and not is_void and rec.counts():
            for account, value, _ in touched: account.used -= value
            lowered = [id(account) for account, value, _ in touched if value and 'source' in event]
            for above in chain: above.imported |= any(id(account) in lowered for account in above.accounts.values())
    def _approval(self, rec, event):
        self._lossy(event.get('meter_limit'), 'meter_limit')
        grant = self._grant_link(event['grant_event_id'], 'grant_event_id')
        if 'request_event_id' in event:
            text, place = digest_text(event['request_event_id']), 'request_event_id'
            claim = self.ids.get(text)
            if not self.tell(claim is None, 'AUTH_NOT_FOUND', place, text):
                self.tell(claim.type != 'authorization' or not claim.ok, 'AUTH_NOT_AN_AUTHORIZATION', place, text)
        approval = self.approvals[rec.id] = Approval(rec, grant)
        for other in self.approvals.values() if event['decision'] == 'reject' and approval.counts else ():
            other.taken_back |= other.used_by is None and other.grant is grant and all(
                other.event[name] == event[name] for name in ('principal_id', 'tool_name', 'tool_params_digest'))
    def _revocation(self, rec, event):
        grant = self._grant_link(event['grant_event_id'], 'grant_event_id')
        if not grant or not rec.counts(): return
        self.withdrawals.append(rec)
        period, stop = grant.withdrawn(), rec.index if event.get('in_flight') == 'stop' else None
        if event['effect'] == 'resume':
            if period and not period.is_final:
                period.end = rec.index
                grant.imported |= 'source' in event
            return
        if not period:
            period = SimpleNamespace(rec=rec, since=rec.index, is_final=False, stop=None, by_authority=False, end=None)
            grant.periods.append(period)
        period.is_final |= event['effect'] == 'revoke'
        period.by_authority |= any('authority' in key.roles for key in rec.counting)
        period.stop = stop if period.stop is None else period.stop
    def _start(self, rec, event):
        params, text = event.get('tool_params_digest'), digest_text(event.get('auth_event_id'))
        target, earlier = self.actions.get(text) or self.grants.get(text), self.starts.get(digest_text(event.get('prev_event_id')))
        if target is None or not rec.counts() or target.event['principal_id'] != event['principal_id'] \
                or not all(name in event and holds(COMMON + form, event[name]) for name, form in START.items()) \
                or 'tool_params_digest' in event and not holds(COMMON + 'digest', params):
            return
        earlier = earlier if earlier and earlier.target is target else None
        is_grant, others = isinstance(target, Grant), len(target.starts) - (earlier is not None)
        if others >= (min(1000, target.limit or 1000) if is_grant else 1): return
        if not is_grant:
            tool = target.action
            if target.spent or (event['tool_name'], params) != (tool['tool_name'], tool['tool_params_digest']): return
            target.begun, target.start_index = rec, rec.index if target.start_index is None else target.start_index
        if earlier:
            extra = vector(earlier.rec.event['meter_known']) if is_grant else target.reserved
            self._close(earlier)
            for account, value in [(grant.accounts[unit], value) for grant in target.chain for unit, value in extra.items()
                                   if unit in grant.accounts]: self._count(account, value, 'prev_event_id', True, True)
        self.starts[rec.id] = target.starts[rec.id] = SimpleNamespace(rec=rec, target=target)
