/* Approvals (verification.md, rule 15): an action of at most one call needs COUNT approvals of different approvers, for it and no other, which
 * may expire and may be withdrawn until an action has named them. Appends are atomic; what a decider read before may be old.
 *
 *   ONCE   1: an approval serves one action; 0: any number
 *   EACH   1: COUNT approvers are needed; 0: COUNT approvals
 *   BOUND  1: an approval is for one call (tool and parameters); 0: for any
 *   OWN    1: the asker's own approval does not count; 0: it does
 *   HOLDS  1: whether it is withdrawn or has expired is judged at the action's place; 0: where the decider looked
 *   CLOCK  1: the later of the action's time and the ledger's clock decides; 0: the action's own time
 */
#ifndef ONCE
#define ONCE 1
#endif
#ifndef EACH
#define EACH 1
#endif
#ifndef BOUND
#define BOUND 1
#endif
#ifndef OWN
#define OWN 1
#endif
#ifndef HOLDS
#define HOLDS 1
#endif
#ifndef CLOCK
#define CLOCK 1
#endif
#define COUNT 2
#ifndef NA                       /* approvals in all */
#define NA 3
#endif
#define EXPIRES 2

/* Who gave each approval: 0 the asker, 1 and 2 others. Which call it is for: 0 or 1. */
byte given;
byte by[NA], call[NA], named[NA];
bool withdrawn[NA];
byte now, clock;                 /* the world's time; that of the ledger's last dating checkpoint */
byte actions;

active proctype Approvers() {
  byte who, which;
end: do
  :: atomic { given < NA ->
       if :: who = 0 :: who = 1 :: who = 2 fi;
       if :: which = 0 :: which = 1 fi;
       by[given] = who; call[given] = which; given++; printf("approver %d approves call %d\n", who, which); who = 0; which = 0 }
  :: atomic { given > 0 && !withdrawn[given - 1] && named[given - 1] == 0 -> withdrawn[given - 1] = true; printf("approval %d is withdrawn\n", given - 1) }
  od
}

active proctype World() {
end: do
  :: atomic { now < EXPIRES + 1 -> now++ }
  :: atomic { clock < now -> clock = now; printf("checkpoint at %d\n", clock) }
  od
}

/* Two approvals, i < j, named for the call `c` by an action of the time `t`. */
#define FOR(i, c) (i < given && (!BOUND || call[i] == c) && (!ONCE || named[i] == 0) && (!OWN || by[i] != 0))
#define LATER(t) ((!CLOCK || t > clock) -> t : clock)
#define STANDS(i, t) (!withdrawn[i] && LATER(t) < EXPIRES)

proctype Asker(byte c) {
  byte i, j, t; bool looked;
  t = now;                       /* the time that it will claim, however late it asks */
end: do
  :: atomic { !looked -> i = 0; j = 1;
       do :: i < NA - 2 -> i++; j = i + 1 :: break od;
       do :: j < NA - 1 -> j++ :: break od;
       if :: FOR(i, c) && FOR(j, c) && (!EACH || by[i] != by[j]) && STANDS(i, t) && STANDS(j, t) -> looked = true :: else -> i = 0; j = 0 fi }
  :: atomic { looked && FOR(i, c) && FOR(j, c) && (!HOLDS || (STANDS(i, t) && STANDS(j, t))) ->
       printf("call %d runs by %d and %d at %d, clock %d\n", c, i, j, t, clock);
       actions++; named[i]++; named[j]++;
       assert(named[i] == 1 && named[j] == 1);                   /* one approval, one action */
       assert(by[i] != by[j]);                                   /* different approvers */
       assert(call[i] == c && call[j] == c);                     /* for this call */
       assert(by[i] != 0 && by[j] != 0);                         /* nobody approves his own */
       assert(!withdrawn[i] && !withdrawn[j]);                   /* not withdrawn */
       assert(clock < EXPIRES);                                  /* not expired, as far as the ledger can tell */
       break }
  :: atomic { looked -> looked = false; i = 0; j = 0 }
  od
}

init { atomic { run Asker(0); run Asker(0) } }
