"""Step 11: the rules on authorizations, executions and what corrects them (verification.md, rules 1 to 18)."""

from bisect import bisect_left, insort
from collections import namedtuple
from fractions import Fraction
from math import lcm
from types import SimpleNamespace
from canonical import canonical
from keys import b64url, matches, sha
from shape import COMMON, amount, digest_text, holds, instant, window

SLICE, MEASURED, G = 'northroot.slice', ('calls', 'time.ms'), '/event/authorization'
MODES = ['digest_only', 'allow_contentref', 'allow_inline']
START = {'intents': 'intents', 'auth_event_id': 'sha256_digest', 'tool_name': 'tool_name', 'started_at': 'timestamp',
         'meter_known': 'meter_vector', 'recorder': 'profile_id'}

Start = namedtuple('Start', 'rec target')

def fits(value):
    """A denominator of at most 400 digits."""
    return value.denominator < 10**400

def vector(meters):
    return {meter['unit']: amount(meter['amount']) for meter in meters or ()}

def optional(event, name):
    return instant(event[name]) if name in event else None

def digest_of(data):
    return {'alg': 'sha-256', 'b64': b64url(sha(data))}

def any_matches(patterns, tool):
    return any(pattern == tool or pattern != SLICE and matches(pattern, tool) for pattern in patterns)

def allows(grant, tool):
    patterns = grant.bounds['allowed_tools']
    return tool in patterns if tool == SLICE else any_matches(patterns, tool)

def covers(mine, theirs):
    """Whether one pattern allows all that the other does."""
    is_wide = mine.endswith('*') and theirs != SLICE
    return mine == theirs or is_wide and theirs.startswith(mine[:-1]) and len(theirs) >= len(mine)

class Account:
    def __init__(self, cap):
        self.cap, self.used, self.reserved, self.estimated = cap, Fraction(0), Fraction(0), Fraction(0)

class Grant:
    def __init__(self, rec, parent):
        self.rec, self.id, self.event, self.parent = rec, rec.id, rec.event, parent
        self.principal, self.part = rec.event['principal_id'], rec.event['authorization']
        bounds = self.bounds = self.part['bounds']
        self.chain = [self, *(parent.chain[:31] if parent else ())]
        self.depth, self.root = (parent.depth + 1, parent.root) if parent else (1, self)
        self.accounts = {unit: Account(cap) for unit, cap in vector(bounds['meter_caps']).items()}
        self.action_caps = vector(bounds.get('action_caps'))
        self.since, self.until = optional(bounds, 'not_before'), optional(bounds, 'expires_at')
        self.rates = [(*window(meter['unit']), amount(meter['amount']), []) for meter in bounds.get('rate_limits', ())]
        self.limit, self.runs = int(bounds['concurrency_limit']['v']) if 'concurrency_limit' in bounds else None, []
        self.rules = [(rule, vector(rule['above']) if 'above' in rule else None) for rule in bounds.get('approvals', ())]
        self.periods, self.starts, self.executions, self.imported = [], set(), 0, 'source' in self.event
        named = self.part.get('slice')
        self.slice = named and (digest_text(named['ledger_id']), digest_text(named['event_id']))
        self.settled, self.state = False, None

    def withdrawn(self):
        return self.periods[-1] if self.periods and self.periods[-1].end is None else None

class Action:
    def __init__(self, rec, grant):
        self.rec, self.id, self.event, self.grant = rec, rec.id, rec.event, grant
        self.action, self.chain = rec.event['authorization']['action'], grant.chain if grant else []
        self.reserved, self.until = vector(self.action.get('meter_reservation')), optional(self.action, 'expires_at')
        self.held, self.spent, self.begun, self.start_index, self.starts = [], False, None, None, set()
        self.approvals, self.needed, self.time, self.authority, self.settlement = [], [], None, False, None

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
        self.grants, self.actions, self.approvals, self.starts = {}, {}, {}, {}
        self.withdrawals, self.requests, self.slices, self.latest = [], {}, {}, None
        self.imported, self.needs_authority, self.was_settled = False, False, False

    def tell(self, is_so, code, place=None, cause=None, related=None, cls=None):
        if is_so:
            self.find(code, self.rec, place, cause, cls, related=related)
        return is_so

    def apply_rules(self, rec, event):
        rec.at, kind = instant(event['occurred_at']), event['event_type']
        self.tell(self.latest is not None and rec.at < self.latest, 'TIME_REGRESSION', '/event/occurred_at', '')
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
        if self.tell(claim is None, 'GRANT_NOT_FOUND', place, text):
            return None
        is_grant = claim.ok and claim.type == 'authorization' and claim.event['authorization']['kind'] == 'grant'
        if self.tell(not is_grant, 'GRANT_NOT_A_GRANT', place, text):
            return None
        self.tell(is_allow and text not in self.grants, 'GRANT_DENIED', place)
        return self.grants.get(text)

    # Authorizations

    def _authorization(self, rec, event):
        part, is_allow, tell = event['authorization'], event['decision'] == 'allow', self.tell
        is_action, grant = part['kind'] == 'action', None
        body, here = (part['action'], G + '/action/') if is_action else (part.get('bounds', {}), G + '/bounds/')
        failed = next((index for index, check in enumerate(event.get('checks', ())) if check['result'] == 'fail'), None)
        tell(is_allow and failed is not None, 'ALLOW_WITH_FAILED_CHECK', f'/event/checks/{failed}/result')
        status = event.get('hygiene', {}).get('status')
        tell(is_allow and status == 'Invalid', 'HYGIENE_NOT_OK', '/event/hygiene/status')
        tell(status in ('Lossy', 'Ambiguous'), 'HYGIENE_LOSSY', '/event/hygiene/status')
        if 'grant_event_id' in part:
            grant = self._grant_link(part['grant_event_id'], G + '/grant_event_id', is_allow)
        for name in ('meter_caps', 'action_caps', 'rate_limits', 'meter_reservation'):
            self._lossy(body.get(name), here + name)
        for index, rule in enumerate(body.get('approvals', ())):
            self._lossy(rule.get('above'), f'{here}approvals/{index}/above')
        action = Action(rec, grant) if is_action and is_allow else None
        self._name_approvals(rec, body.get('approval_event_ids', ()), action)
        rec.denied = not is_allow
        if not is_allow:
            return
        if grant:
            tell(is_action and event['principal_id'] != grant.principal, 'PRINCIPAL_MISMATCH', '/event/principal_id')
            tell(rec.at < grant.rec.at, 'AUTHORIZATION_BEFORE_GRANT', '/event/occurred_at')
            self._intents(event['intents'], grant)
        if is_action:
            self._allow_action(rec, action, action.action['tool_name'], action.chain)
        else:
            self._allow_grant(Grant(rec, grant), grant)

    def _intents(self, mine, grant):
        theirs, place, name = grant.event['intents'], '/event/intents/user_intent_digest', 'user_intent_digest'
        if mine['intent_digest'] != theirs['intent_digest']:
            right = theirs.get(name, theirs['intent_digest'])
            self.tell(name not in mine, 'INTENT_UNLINKED', place, grant.id, grant.rec)
            self.tell(mine.get(name, right) != right, 'INTENT_MISMATCH', place)

    def _allow_grant(self, grant, parent):
        if parent:
            self._delegation(grant, parent, grant.bounds, parent.bounds)
            listed = parent.bounds.get('resources')
            self.tell(listed and any(one not in listed for one in grant.bounds.get('resources', ())), 'RESOURCE_NOT_GRANTED',
                      G + '/bounds/resources', related=parent.rec)
            self.tell(any(map(self._is_closed, parent.chain)), 'GRANT_REVOKED', G + '/grant_event_id')
        self.imported |= any(above.imported for above in grant.chain[1:])
        self.grants[grant.id] = grant
        if grant.slice:
            self.tell(grant.slice in self.slices, 'SLICE_REUSED', G + '/slice/event_id')
            self.slices.setdefault(grant.slice, grant)
            if grant.slice[0] in self.parents:
                self._slice(grant, self.parents[grant.slice[0]].actions.get(grant.slice[1]))

    def _is_settled(self, grant):
        return bool(grant.slice and self.slices[grant.slice].settled)

    def _is_closed(self, grant):
        return bool(grant.withdrawn()) or self._is_settled(grant)

    def _delegation(self, grant, parent, mine, theirs):
        def tell(is_so, place):
            return self.tell(is_so, 'DELEGATION_EXCEEDED', G + '/' + place)

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
        for unit, cap in parent.action_caps.items():
            tell(unit not in grant.action_caps or grant.action_caps[unit] > cap, 'bounds/action_caps')
        tell(parent.since is not None and (grant.since is None or grant.since < parent.since), 'bounds/not_before')
        tell(parent.until is not None and (grant.until is None or grant.until > parent.until), 'bounds/expires_at')
        for unit, seconds, limit, _ in parent.rates:
            tell(not any(rate[:2] == (unit, seconds) and rate[2] <= limit for rate in grant.rates), 'bounds/rate_limits')
        tell(parent.limit is not None and (grant.limit is None or grant.limit > parent.limit), 'bounds/concurrency_limit')
        tell('output_mode' in theirs and (
            'output_mode' not in mine or MODES.index(mine['output_mode']) > MODES.index(theirs['output_mode'])), 'bounds/output_mode')

    def _name_approvals(self, rec, ids, action):
        for index, id_ in enumerate(ids):
            text, place = digest_text(id_), f'{G}/action/approval_event_ids/{index}'
            approval = self.approvals.get(text)
            self.tell(text not in self.ids, 'APPROVAL_NOT_FOUND', place, text)
            self.tell(text in self.ids and not approval, 'APPROVAL_NOT_AN_APPROVAL', place, text)
            if action and approval and approval.is_for(action) and not self.tell(approval.used_by, 'APPROVAL_REUSED', place):
                approval.used_by = rec.id
                action.approvals.append(approval)

    def _allow_action(self, rec, action, tool, chain):
        here, reserved = G + '/action/', [(f'{G}/action/meter_reservation/{index}/amount', *one)
                                          for index, one in enumerate(action.reserved.items())]
        self.tell(not all(allows(grant, tool) for grant in chain), 'TOOL_NOT_ALLOWED', here + 'tool_name')
        self._within(chain, rec.at, '/event/occurred_at', True)
        for place, unit, value in reserved:
            for grant in chain:
                self.tell(value > grant.action_caps.get(unit, value), 'ACTION_CAP_EXCEEDED', place)
            self._uncapped(chain, unit, value, place)
            for account in [grant.accounts[unit] for grant in chain if unit in grant.accounts]:
                if not self.tell(not fits(account.reserved + value), 'QUANTITY_INVALID', place):
                    account.reserved += value
                    action.held.append((account, value))
                    self.tell(value > 0 and account.used + account.reserved > account.cap, 'RESERVATION_OVER_CAP', place)
        self._exceeds_approval(action, reserved)
        action.time, action.authority = self.moment(rec), self.authority
        action.needed = [(rule, chain[:index + 1]) for index, grant in enumerate(chain) for rule, above in grant.rules
                         if any_matches(rule['tools'], tool) and (above is None or not all(
                             unit in action.reserved and action.reserved[unit] <= most for unit, most in above.items()))]
        self.tell(not all(self._approved(action, *one) for one in action.needed), 'APPROVAL_MISSING', here + 'approval_event_ids')
        self.tell(any(map(self._is_closed, chain)), 'GRANT_REVOKED', G + '/grant_event_id')
        if 'request_key' in action.action:
            key = (rec.event['principal_id'], action.grant and action.grant.root.id, action.action['request_key'])
            if not self.tell(key in self.requests and not self.requests[key].own_invalid, 'REQUEST_REPEATED', here + 'request_key'):
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

    def _uncapped(self, chain, unit, value, place):
        if value > 0 and chain and unit not in MEASURED and not any(unit in grant.accounts for grant in chain):
            self.tell(True, 'METER_UNCAPPED', place, f'{chain[0].id} {unit}', chain[0].rec)

    # Slices

    def _slice(self, grant, action):
        if self.tell(action is None or action.action['tool_name'] != SLICE or not action.begun or action.rec.invalid
                     or action.rec.violation, 'SLICE_NOT_FOUND', G + '/slice/event_id'):
            return
        grant.state, right = [], digest_of(canonical({'ledger_id': self.ledger_id}))
        self.tell(action.action['tool_params_digest'] != right, 'SLICE_MISMATCH', G + '/slice/event_id')
        self.tell(action.event['principal_id'] != grant.principal, 'SLICE_MISMATCH', '/event/principal_id')
        for unit in dict.fromkeys([*action.reserved, *(unit for above in action.chain for unit in above.accounts)]):
            self.tell(unit not in grant.accounts, 'SLICE_EXCEEDED', G + '/bounds/meter_caps')
        for index, (unit, account) in enumerate(grant.accounts.items()):
            self.tell(account.cap > action.reserved.get(unit, 0), 'SLICE_EXCEEDED', f'{G}/bounds/meter_caps/{index}/amount')
        self.tell(action.until is not None and (grant.until is None or grant.until > action.until), 'SLICE_EXCEEDED',
                  G + '/bounds/expires_at')

    def _settlement(self, grant):
        return self.parents[grant.slice[0]].actions[grant.slice[1]].settlement if grant.state is not None else None

    def settle_slices(self, note):
        """At a checkpoint: what is open under the slices that it settles, and what was used."""
        for grant in self.slices.values():
            settlement = self._settlement(grant)
            if settlement is None or grant.settled or settlement.get('output_digest') != digest_of(note.encode()):
                continue
            grant.settled, period, stated = True, grant.withdrawn(), vector(settlement['meter_used'])
            is_open = any(not action.spent and grant in action.chain for action in self.actions.values()) \
                or any(grant in start.target.chain for start in self.starts.values())
            used = {unit: account.used for unit, account in grant.accounts.items()}
            grant.state = ['open'] if is_open or not (period and period.is_final and period.stop is not None) else []
            grant.state += [unit for unit in {**used, **stated} if used.get(unit, 0) != stated.get(unit, 0)]

    def end_slices(self):
        for grant in self.grants.values():
            if grant.slice and self.slices[grant.slice] is grant and self._settlement(grant) is not None:
                for _ in grant.state if grant.settled else ('no checkpoint',):
                    self.find('SLICE_MISMATCH', grant.rec, G + '/slice/event_id')

    # Executions

    def _execution(self, rec, event):
        used, place, tell = vector(event['meter_used']), '/event/auth_event_id', self.tell
        self._lossy(event['meter_used'], '/event/meter_used')
        began, ended, text = optional(event, 'started_at'), optional(event, 'ended_at'), digest_text(event['auth_event_id'])
        tell(None not in (began, ended) and ended < began, 'TIMESTAMP_INVALID', '/event/ended_at')
        tell(began is not None and began > rec.at, 'TIME_INCONSISTENT', '/event/started_at')
        claim = self.ids.get(text)
        if claim is None:
            rec.invalid = rec.own_invalid = True
            self.pending.setdefault(text, []).append(rec)
            return
        if tell(claim.type != 'authorization' or not claim.ok, 'AUTH_NOT_AN_AUTHORIZATION', place, text):
            return
        has_output = event.keys() & {'output_digest', 'output_ref'} or event.get('resources_touched')
        is_failure = event['outcome'] == 'failure' and not has_output
        is_release = is_failure and event['error_code'] == 'ABANDONED' and not used and ended in (None, began)
        if claim.event['decision'] == 'deny':
            rec.denied = is_failure and not any(used.values())
            self._compare(event, claim.event, rec.denied)
            tell(not rec.denied, 'EXECUTION_UNDER_DENY', place)
            return
        action = self.actions.get(text)
        target = action or self.grants[text]
        start = self.starts.get(digest_text(event.get('prev_event_id')))
        start = start if start and start.target is target else None
        is_exempt = start and all(start.rec.event[name] == event[name] for name in ('principal_id', 'tool_name'))
        own = action if action and not action.spent else None
        if not tell(action and not own, 'AUTHORIZATION_REUSED', place, text):
            self._compare(event, claim.event, is_release and action)
        is_slice = action and action.action['tool_name'] == SLICE
        if is_slice:
            self.was_settled = True
            action.settlement = action.settlement or (None if is_release else event)
        is_release = bool(is_release and own)
        is_settling = bool(own and is_slice and not is_release)
        at = rec.at if began is None else began
        amounts = [(f'/event/meter_used/{index}/amount', *one) for index, one in enumerate(used.items())]
        self._use(rec, event, own, target, amounts, (is_release, is_failure, is_settling), at)
        self._end_of_execution(event, own, target, amounts, start if is_exempt else None, (is_release, is_settling))
        for one in [start] * bool(start) + list(own.starts if own else ()):
            self._close(one)
        if own:
            own.spent = True

    def _compare(self, event, authorization, is_excused):
        action = authorization['authorization'].get('action', event)
        self.tell(event['principal_id'] != authorization['principal_id'], 'PRINCIPAL_MISMATCH', '/event/principal_id')
        self.tell(event['intents']['intent_digest'] != authorization['intents']['intent_digest'], 'INTENT_MISMATCH',
                  '/event/intents/intent_digest')
        self.tell(event['tool_name'] != action['tool_name'], 'TOOL_MISMATCH', '/event/tool_name')
        mine, theirs = event.get('tool_params_digest'), action.get('tool_params_digest')
        self.tell(theirs and not mine and not is_excused, 'EVIDENCE_MISSING', '/event/tool_params_digest')
        self.tell(theirs and mine and mine != theirs, 'TOOL_PARAMS_MISMATCH', '/event/tool_params_digest')

    def _use(self, rec, event, own, target, amounts, sort, at):
        """Findings 11 to 18: `own` is the action that this execution spends."""
        is_release, is_failure, is_settling = sort
        is_free, reserved, tell = is_release or is_settling, own.reserved if own else {}, self.tell
        chain = rec.under = target.chain
        time_place = '/event/started_at' if 'started_at' in event else '/event/occurred_at'
        tell(is_release and own.begun, 'RELEASE_OF_STARTED', '/event/error_code', related=own and own.begun)
        tell(not all(allows(grant, event['tool_name']) for grant in chain), 'TOOL_NOT_ALLOWED', '/event/tool_name')
        tell(any(at < one.rec.at for one in [*([own] if own else ()), *chain]), 'EXECUTION_BEFORE_AUTHORIZATION', time_place)
        self._within(chain, at, time_place, not is_free)
        tell(own and own.until is not None and at >= own.until and not is_free, 'ACTION_EXPIRED', time_place)
        for place, unit, value in amounts:
            tell(value > reserved.get(unit, value), 'RESERVATION_EXCEEDED', place)
            for grant in chain:
                tell(value > grant.action_caps.get(unit, value), 'ACTION_CAP_EXCEEDED', place)
            if unit not in reserved:
                self._uncapped(chain, unit, value, place)
        uses, silent = {unit: (value, place) for place, unit, value in amounts}, []
        if own and (not is_failure or is_release and own.begun):
            silent = [unit for unit, value in reserved.items() if unit not in uses and value > 0]
            uses.update({unit: (reserved[unit], '/event/meter_used') for unit in silent})
        for account, value in own.held if own else ():
            account.reserved -= value
        bases = {**dict.fromkeys(uses, event.get('meter_basis')), **event.get('meter_basis_by_unit', {}), **dict.fromkeys(silent, 'estimated')}
        order = [*(unit for unit in reserved if unit in uses), *(unit for unit in uses if unit not in reserved)]
        for account, unit in [(grant.accounts[unit], unit) for grant in chain for unit in order if unit in grant.accounts]:
            value, place = uses[unit]
            self._count(account, value, place, bases[unit] == 'estimated', value > reserved.get(unit, 0))
        for unit in silent if not is_release else ():
            tell(unit not in MEASURED, 'METER_UNREPORTED', '/event/meter_used', f'{chain[0].id if chain else ""} {unit}', own.rec)
        for grant in chain if not is_release else ():
            grant.executions += 1
        if not is_free:
            self._rates(chain, {unit: value for unit, (value, _) in uses.items()}, at, time_place)
            self._concurrency(event, [grant for grant in chain if grant.limit is not None])

    def _count(self, account, value, place, is_estimate, with_reserved):
        guess = value if is_estimate else 0
        if not self.tell(not fits(account.used + value) or not fits(account.estimated + guess), 'QUANTITY_INVALID', place):
            account.used += value
            account.estimated += guess
            over = account.used + (account.reserved if with_reserved else 0)
            self.tell(value > 0 and over > account.cap, 'METER_CAP_EXCEEDED', place)

    def _rates(self, chain, uses, at, place):
        for unit, seconds, limit, earlier in [rate for grant in chain for rate in grant.rates]:
            value, span = Fraction(1) if unit == 'calls' else uses.get(unit, 0), seconds * 10**9
            if value == 0:
                continue
            near = earlier[bisect_left(earlier, (at - span + 1, 0)):bisect_left(earlier, (at + span, 0))] + [(at, value)]
            windows = [[part for time, part in near if end - span < time <= end] for end, _ in near if end >= at]
            if not self.tell(any(lcm(*(part.denominator for part in parts)) >= 10**400 for parts in windows), 'QUANTITY_INVALID', place):
                insort(earlier, (at, value))
                self.tell(max(map(sum, windows)) > limit, 'RATE_LIMIT_EXCEEDED', place)

    def _concurrency(self, event, limited):
        began, ended = optional(event, 'started_at'), optional(event, 'ended_at')
        missing = 'started_at' if began is None else 'ended_at'
        if not limited or self.tell(None in (began, ended), 'EVIDENCE_MISSING', '/event/' + missing) or ended < began:
            return
        for grant in limited:
            grant.runs.append((began, ended))
            # Most overlap where one of them begins.
            starts = [one[0] for one in grant.runs if _is_on((began, ended), one[0])]
            self.tell(any(sum(_is_on(one, at) for one in grant.runs) > grant.limit for at in starts), 'CONCURRENCY_EXCEEDED',
                      '/event/started_at')

    def _end_of_execution(self, event, own, target, amounts, start, sort):
        """Findings 19 to 23."""
        is_release, is_settling = sort
        chain, tool, used = target.chain, event['tool_name'], {unit: value for _, unit, value in amounts}
        self.tell('output_ref' in event and any(grant.bounds.get('output_mode') == 'digest_only' for grant in chain),
                  'OUTPUT_MODE_EXCEEDED', '/event/output_ref')
        for index, resource in enumerate(event.get('resources_touched', ())):
            grants = [grant.rec for grant in chain if resource not in grant.bounds.get('resources', [resource])]
            self.tell(grants, 'RESOURCE_NOT_GRANTED', f'/event/resources_touched/{index}', related=grants and grants[0])
        if own:
            self._exceeds_approval(own, amounts)
        needed = [(rule, chain[:index + 1]) for index, grant in enumerate(chain) for rule, above in grant.rules
                  if any_matches(rule['tools'], tool) and not (own and any(rule is other for other, _ in own.needed))
                  and (above is None or any(used.get(unit, 0) > most for unit, most in above.items()))]
        is_asked = (own or isinstance(target, Grant)) and not is_release
        self.tell(is_asked and any(not own or not self._approved(own, *one) for one in needed), 'APPROVAL_MISSING', '/event/auth_event_id')
        self.tell(not is_release and any(self._is_settled(grant) or not is_settling and self._is_stopped(grant, target, start)
                                         for grant in chain), 'GRANT_REVOKED', '/event/auth_event_id')
        self.imported |= any(grant.imported for grant in chain) or isinstance(target, Action) and (
            'source' in target.event or self._is_imported(target))

    def _is_stopped(self, grant, target, start):
        """An open start before the withdrawal exempts; of an action, one before the stop."""
        periods, place = [one for one in grant.periods if one.end is None], 'since'
        if isinstance(target, Action):
            periods = [one for one in grant.periods if one.stop is not None and (one.end is None or target.rec.index < one.end)]
            place = 'stop'
        return any(not (start and start.rec.index < getattr(period, place)) for period in periods)

    def _close(self, start):
        self.starts.pop(start.rec.id, None)
        start.target.starts.discard(start)

    # Adjustments, approvals, revocations, starts

    def _adjustment(self, rec, event):
        is_credit, meters, tell = event['direction'] == 'credit', vector(event['meters']), self.tell
        self._lossy(event['meters'], '/event/meters')
        grant = self._grant_link(event['grant_event_id'], '/event/grant_event_id')
        if 'execution_event_id' in event:
            claim, place = self.ids.get(digest_text(event['execution_event_id'])), '/event/execution_event_id'
            if not tell(claim is None or not claim.ok or claim.type != 'execution', 'EXECUTION_NOT_FOUND', place):
                tell(grant and grant not in claim.under, 'EXECUTION_NOT_UNDER_GRANT', place)
        if not grant:
            return
        is_void = tell(is_credit and any(event['principal_id'] == above.principal for above in grant.chain), 'SELF_CREDIT',
                       '/event/principal_id')
        amounts = [(f'/event/meters/{index}/amount', *one) for index, one in enumerate(meters.items())]
        for place, unit, _ in amounts:
            tell(unit not in grant.accounts, 'METER_UNCAPPED', place, f'{grant.id} {unit}', grant.rec)
        amounts = [(place, value, [above.accounts[unit] for above in grant.chain if unit in above.accounts])
                   for place, unit, value in amounts if unit in grant.accounts]
        touched = [(place, value, account) for place, value, accounts in amounts for account in accounts]
        if not is_credit:
            for place, value, account in touched:
                self._count(account, value, place, event.get('meter_basis') == 'estimated', True)
            return
        for place, value, accounts in amounts:
            is_void |= tell(any(value > account.used for account in accounts), 'ADJUSTMENT_EXCEEDED', place)
        for place, value, account in touched:
            tell(not is_void and not fits(account.used - value), 'QUANTITY_INVALID', place)
        if not is_void and rec.counts():
            for _, value, account in touched:
                account.used -= value
            grant.imported |= 'source' in event

    def _approval(self, rec, event):
        self._lossy(event.get('meter_limit'), '/event/meter_limit')
        grant = self._grant_link(event['grant_event_id'], '/event/grant_event_id')
        if 'request_event_id' in event:
            text, place = digest_text(event['request_event_id']), '/event/request_event_id'
            claim = self.ids.get(text)
            if not self.tell(claim is None, 'AUTH_NOT_FOUND', place, text):
                self.tell(claim.type != 'authorization' or not claim.ok, 'AUTH_NOT_AN_AUTHORIZATION', place, text)
        approval = self.approvals[rec.id] = Approval(rec, grant)
        for other in self.approvals.values() if event['decision'] == 'reject' and approval.counts else ():
            other.taken_back |= other.used_by is None and other.grant is grant and all(
                other.event[name] == event[name] for name in ('principal_id', 'tool_name', 'tool_params_digest'))

    def _revocation(self, rec, event):
        grant = self._grant_link(event['grant_event_id'], '/event/grant_event_id')
        if not grant or not rec.counts():
            return
        self.withdrawals.append(rec)
        period, stop = grant.withdrawn(), rec.index if event.get('in_flight') == 'stop' else None
        by_authority = any('authority' in key.roles for key in rec.counting)
        if event['effect'] == 'resume':
            if period and not period.is_final:
                period.end = rec.index
                grant.imported |= 'source' in event
        elif not period:
            grant.periods.append(SimpleNamespace(
                rec=rec, since=rec.index, is_final=event['effect'] == 'revoke', stop=stop, by_authority=by_authority, end=None))
        else:
            period.is_final |= event['effect'] == 'revoke'
            period.by_authority |= by_authority
            period.stop = stop if period.stop is None else period.stop

    def _start(self, rec, event):
        params, text = event.get('tool_params_digest'), digest_text(event.get('auth_event_id'))
        target = self.actions.get(text) or self.grants.get(text)
        if target is None or not rec.counts() or target.event['principal_id'] != event['principal_id'] \
                or not all(name in event and holds(COMMON + form, event[name]) for name, form in START.items()) \
                or 'tool_params_digest' in event and not holds(COMMON + 'digest', params):
            return
        earlier = self.starts.get(digest_text(event.get('prev_event_id')))
        earlier = earlier if earlier and earlier.target is target else None
        others = len(target.starts) - (earlier is not None)
        if isinstance(target, Grant):
            if others >= min(1000, target.limit or 1000):
                return
            extra = vector(earlier.rec.event['meter_known']) if earlier else {}
        else:
            if target.spent or others or (event['tool_name'], params) != (
                    target.action['tool_name'], target.action['tool_params_digest']):
                return
            extra, target.begun = target.reserved, rec
            target.start_index = rec.index if target.start_index is None else target.start_index
        if earlier:
            self._close(earlier)
            for account, value in [(grant.accounts[unit], value) for grant in target.chain for unit, value in extra.items()
                                   if unit in grant.accounts]:
                self._count(account, value, '/event/prev_event_id', True, True)
        start = self.starts[rec.id] = Start(rec, target)
        target.starts.add(start)

def _is_on(run, at):
    return run[0] == at or run[0] <= at < run[1]
