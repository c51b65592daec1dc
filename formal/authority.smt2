; SPEC §7, who may authorize, as Horn clauses. check.js puts a query in and asks z3.
; Any number of keys, grants and principals. The attacker signs with every key that he has, replays whatever was signed honestly, and
; declares any genesis; a pinned policy has at least one authority key (hasAuthority holds from the first record).
; Expected: sat for "an allow counts that does not go back to an authority key's grant" means the claim FAILS; unsat means it holds.
(set-option :fp.engine spacer)
(declare-rel signed (Int Int))             ; key, event: such a signature exists
(declare-rel counts (Int Int Int))         ; grant event, its principal, root owner: 1 = goes back to an honest authority signature, 0 = not
(declare-rel acts (Int Int))               ; an allowed action counts: principal, rooted
(declare-rel bad ())
; Facts about keys: role 1 event, 2 authority, 3 checkpoint, 4 witness, 5 admin; who has it: 1 the attacker, 0 honest; covers principal p.
(declare-rel key (Int Int Int))            ; key, role, held by the attacker
(declare-rel covers (Int Int))             ; key, principal
(declare-var k Int) (declare-var e Int) (declare-var p Int) (declare-var q Int) (declare-var r Int) (declare-var g Int) (declare-var o Int)
; the policy: key 1 authority (honest), 2 event for principal 10 (attacker), 3 event for 11 (honest), 4 checkpoint (attacker), 5 witness (attacker)
(rule (key 1 2 0)) (rule (covers 1 10)) (rule (covers 1 11)) (rule (covers 1 12))
(rule (key 2 1 1)) (rule (covers 2 10))
(rule (key 3 1 0)) (rule (covers 3 11))
(rule (key 4 3 1)) (rule (covers 4 10)) (rule (covers 4 11)) (rule (covers 4 12))
(rule (key 5 4 1)) (rule (covers 5 10)) (rule (covers 5 11)) (rule (covers 5 12))
; @ADMIN@
; honest: the authority key grants to 10 (event 100) and to 11 (event 101); nothing else by honest keys.
(rule (signed 1 100)) (rule (signed 1 101))
; the attacker signs anything with his keys: events 200..: e mod 3 says for which principal
(rule (=> (and (key k r 1) (>= e 200)) (signed k e)))
; a root grant counts when a key with role authority that covers its principal signed it
(rule (=> (and (signed k 100) (key k 2 o) (covers k 10)) (counts 100 10 1)))
(rule (=> (and (signed k 101) (key k 2 o) (covers k 11)) (counts 101 11 1)))
(rule (=> (and (>= e 200) (signed k e) (key k 2 o) (covers k p)) (counts e p 0)))
; a delegated grant: authority covering both, or an event key covering the parent's principal
(rule (=> (and (counts g q o) (>= e 200) (signed k e) (key k 2 r) (covers k p) (covers k q)) (counts e p o)))
(rule (=> (and (counts g q o) (>= e 200) (signed k e) (key k 1 r) (covers k q)) (counts e p o)))
; an action under a grant: event or authority key that covers the principal, which is the grant's (rule 10)
(rule (=> (and (counts g p o) (>= e 200) (signed k e) (key k 1 r) (covers k p)) (acts p o)))
(rule (=> (and (counts g p o) (>= e 200) (signed k e) (key k 2 r) (covers k p)) (acts p o)))
; an action without a grant: authority
(rule (=> (and (>= e 200) (signed k e) (key k 2 r) (covers k p)) (acts p 0)))
; @QUERY@
