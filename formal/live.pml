/* northroot's live protocol: decide, start, run, settle; with crashes, takeover, abandoning, release, revocation and approvals.
 * Every append is one atomic step: it is judged and written under the lock, on the state that all records before it give.
 * A crash may come between any two steps: what the process knew is lost, what is in the log stays. (A lost answer is a crash after an
 * append.) The defaults are northroot's rules; the other values are the weakened variants, which must fail.
 *
 *   NP      workers
 *   NA      actions in all
 *   CAP     of the one grant; each action reserves 1 and uses 1
 *   MAXC    crashes in all
 *   MAXR    takeovers in all
 *   PICK    1: a worker may start an open action that another decided
 *   ABANDON 1: what was started and is abandoned counts as used; 0: abandoning gives its reservation back
 *   ALIVE   1: who takes over or abandons may be wrong about the recorder being gone
 *   GUARD   1: a guard whose start is refused releases the action only if nobody began it; 0: whoever has begun it
 *   RESUME  2: a start is taken over only where there is room to count the earlier try as used; 1: under the same reservation; 0: never
 *   REVOKE  0 none, 1 finish, 2 stop, 3 finish then perhaps stop
 *   APPROVE 1: each action needs an approval, which may be withdrawn
 *   SWEEP   1: a sweeper releases what is open and not begun, and settles what crashed recorders have begun
 *   CHECK   1: no more runs than the cap; 2: no action runs twice unless taken over; 4: both; 3: nothing runs after stop
 */
#ifndef NP
#define NP 3
#endif
#ifndef NA
#define NA 4
#endif
#ifndef CAP
#define CAP 2
#endif
#ifndef MAXC
#define MAXC 2
#endif
#ifndef ABANDON
#define ABANDON 1
#endif
#ifndef ALIVE
#define ALIVE 0
#endif
#ifndef GUARD
#define GUARD 1
#endif
#ifndef PICK
#define PICK 1
#endif
#ifndef RESUME
#define RESUME 2
#endif
#ifndef MAXR
#define MAXR 2
#endif
#ifndef REVOKE
#define REVOKE 0
#endif
#ifndef APPROVE
#define APPROVE 0
#endif
#ifndef SWEEP
#define SWEEP 1
#endif
#ifndef CHECK
#define CHECK 0
#endif

#define NONE 0
#define OPEN 1
#define SPENT 2

/* What the log says. */
byte next, used, reserved, sid, nres, ncrash;
byte st[NA];            /* of each action */
byte startOf[NA];       /* its open start; 0: none */
bool revoked, stopped;
byte approvals;         /* given, not withdrawn, not used */
/* Ghosts: what really happened. */
byte runs[NA], resumed[NA];
byte total;             /* runs, each uses 1 */
byte given, decided;    /* approvals that were ever to be had, and actions */
bool viol;              /* an honest process had to record a violation */
byte holds[NP];         /* the start that a living worker acts on */

inline release(x)  { reserved--; st[x] = SPENT; startOf[x] = 0 }
inline settleRun(x) {
  if
  :: st[x] == OPEN -> reserved--; used++; st[x] = SPENT; startOf[x] = 0
  :: else -> used++; viol = true       /* AUTHORIZATION_REUSED; what was used counts all the same */
  fi
}
#define GONE(x) (startOf[x] != 0 && holds[0] != startOf[x] && holds[1 % NP] != startOf[x] && holds[2 % NP] != startOf[x])
#define MAYTAKE(x) (st[x] == OPEN && startOf[x] != 0 && (ALIVE || GONE(x)))

#define CRASH (ncrash < MAXC) -> printf("W%d CRASHES\n", me); ncrash++; holds[me] = 0; goto top

proctype W(byte me) {
  byte a, x; bool own;   /* own: it authorized the action itself, as a guard does */
top:
  atomic { a = 0; x = 0; own = false; holds[me] = 0 }
endtop:
  do
  :: atomic { next < NA && !revoked && used + reserved + 1 <= CAP && (!APPROVE || approvals > 0) ->
       a = next; own = true; next++; st[a] = OPEN; reserved++; decided++;
       if :: APPROVE -> approvals-- :: else fi; printf("W%d authorize A%d (used %d reserved %d)\n", me, a, used, reserved); goto claim }
#if PICK
  :: atomic { next > 0 -> x = 0;
       do :: x + 1 < next -> x++ :: break od;
       if :: st[x] == OPEN && startOf[x] == 0 -> a = x; x = 0; printf("W%d takes open A%d\n", me, a); goto claim :: else -> x = 0; goto top fi }
#endif
#if RESUME
  :: atomic { next > 0 && nres < MAXR -> x = 0;
       do :: x + 1 < next -> x++ :: break od;
       if
       :: MAYTAKE(x) && !stopped && (RESUME == 1 || used + reserved + 1 <= CAP) -> a = x; x = 0; nres++;
          if :: RESUME == 2 -> used++ :: else fi; resumed[a]++; sid++; startOf[a] = sid; holds[me] = sid; printf("W%d --resume A%d: start S%d\n", me, a, sid); goto begun
       :: else -> x = 0; goto top
       fi }
#endif
  od;
claim:
  if
  :: atomic { st[a] == OPEN && startOf[a] == 0 && !stopped -> sid++; startOf[a] = sid; holds[me] = sid; printf("W%d start A%d: S%d\n", me, a, sid); goto begun }
  :: atomic { !(st[a] == OPEN && startOf[a] == 0 && !stopped) -> printf("W%d start of A%d refused\n", me, a); goto refused }
  :: atomic { CRASH }
  fi;
refused:
  if
  :: atomic { if
       :: st[a] == OPEN && own && (startOf[a] == 0 || GUARD == 0) -> printf("W%d RELEASES A%d (its start: S%d)\n", me, a, startOf[a]); release(a)
       :: else fi; goto top }
  :: atomic { CRASH }
  fi;
begun:
  if
  :: atomic { runs[a]++; total++; printf("W%d RUNS A%d (run %d of A%d, %d in all)\n", me, a, runs[a], a, total);
#if CHECK == 1 || CHECK == 4
       assert(total <= CAP);
#endif
#if CHECK == 2 || CHECK == 4
       assert(runs[a] <= 1 + resumed[a]);
#endif
#if CHECK == 3
       assert(!stopped);    /* the stronger reading: not even the effect begins after stop */
#endif
       goto ran }
  :: atomic { /* aborted before it ran: it gives its own start back */
       if :: st[a] == OPEN && startOf[a] == holds[me] -> release(a) :: else fi; goto top }
  :: atomic { CRASH }
  fi;
ran:
  if
  :: atomic { printf("W%d records A%d\n", me, a); settleRun(a); goto top }
  :: atomic { CRASH }
  fi
}

proctype Sweeper() {
  byte x;
endsweep:
  do
  :: atomic { next > 0 && (st[0] == OPEN
#if NA > 1
     || st[1] == OPEN
#endif
#if NA > 2
     || st[2] == OPEN
#endif
#if NA > 3
     || st[3] == OPEN
#endif
     ) ->   /* each in its turn */
       if
       :: st[x] == OPEN && startOf[x] == 0 -> printf("sweeper releases A%d, never begun\n", x); release(x)
       :: MAYTAKE(x) ->
            if
            :: ABANDON == 0 -> printf("sweeper --abandon A%d: released\n", x); release(x)
            :: else -> printf("sweeper --abandon A%d: counted as used\n", x); reserved--; used++; st[x] = SPENT; startOf[x] = 0
            fi
       :: else
       fi; x = (x + 1) % NA }
  od
}

proctype Revoker() {
  if
  :: atomic { (REVOKE == 1 || REVOKE == 3) -> revoked = true }
  :: atomic { (REVOKE == 2 || REVOKE == 3) -> revoked = true; stopped = true; printf("REVOCATION stop\n") }
  fi;
  if
  :: atomic { REVOKE == 3 -> stopped = true; printf("REVOCATION stop\n") }
  :: true
  fi
}

proctype Approver() {
  byte n;
  do
  :: atomic { n < 3 -> n++; approvals++; given++ }
  :: atomic { approvals > 0 && n < 4 -> n++; given = given - approvals; approvals = 0 }  /* a reject withdraws what no action has named */
  :: break
  od
}

init {
  atomic {
    run W(0);
#if NP > 1
    run W(1);
#endif
#if NP > 2
    run W(2);
#endif
#if SWEEP
    run Sweeper();
#endif
#if REVOKE
    run Revoker();
#endif
#if APPROVE
    run Approver();
#endif
  }
}

/* What the log counts is never over the cap (the account's invariant), and no action is had without an approval. */
#define capInLog (used + reserved <= CAP || viol)
ltl account { [] capInLog }
ltl approved { [] (!APPROVE || decided <= given) }
ltl both { [] (capInLog && (!APPROVE || decided <= given)) }
ltl honest { [] !viol }
/* Each reservation is settled in the end, where the sweeper runs (with -f, weak fairness). */
ltl settled { [] ((st[0] == OPEN) -> <> (st[0] == SPENT)) }
