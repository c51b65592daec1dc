/* The gate's table of open calls (SPEC rule 18): hosts ask for their calls by a key of their own, ask again where no answer comes, run what they
 * may, late or never, and report it, once or more. Two gates have one ledger; either may die and start again. Each call reserves and uses 1.
 *
 *   KEYED  1: a gate asks the ledger for the key; 0: its own table alone
 *   BUILT  1: the table is built anew from the ledger at a start; 0: it begins empty (with KEYED 0)
 *   GROUP  1: an action and its start are one group; 0: a gate may die in between, and the sweeper takes the call for one that never began
 *   SWEEP  2: what has begun and is overdue counts as used; 1: it is released; 0: nothing is swept
 *   TWICE  1: a second report of a call changes nothing; 0: it counts again
 *   LATE   1: a report after the sweep corrects what was counted; 0: it counts beside it
 */
#ifndef KEYED
#define KEYED 1
#endif
#ifndef BUILT
#define BUILT 1
#endif
#ifndef GROUP
#define GROUP 1
#endif
#ifndef SWEEP
#define SWEEP 2
#endif
#ifndef TWICE
#define TWICE 1
#endif
#ifndef LATE
#define LATE 1
#endif
#ifndef NC
#define NC 2                     /* calls, one more than the cap allows */
#endif
#define NG 2                     /* gates */
#ifndef CAP
#define CAP (NC - 1)
#endif

mtype = { none, open, swept, reported };
/* What the ledger says. */
mtype st[NC] = none;
bool begun[NC];
byte used, reserved;
/* What each gate remembers: bits of calls. */
byte table[NG];
/* Ghosts. */
byte allowed[NC], ran[NC], runs, deaths;

#define KNOWS(g, c) ((KEYED && st[c] != none) || (!KEYED && (table[g] & (1 << c))))

proctype Host(byte c) {
  byte g, tries, reports; bool may;
ask:
  if :: tries == 2 -> goto over :: else -> tries++ fi;
  if :: g = 0 :: g = 1 fi;
  atomic {
    may = false;
    if
    :: KNOWS(g, c) -> may = (st[c] == open); printf("gate %d answers call %d again: %d\n", g, c, may)
    :: else ->
       if
       :: used + reserved + 1 <= CAP -> allowed[c]++; st[c] = open; reserved++; begun[c] = GROUP; table[g] = table[g] | (1 << c); may = true;
            printf("gate %d allows call %d\n", g, c);
            assert(allowed[c] <= 1)               /* one request, one action */
       :: else -> printf("gate %d denies call %d\n", g, c)
       fi
    fi }
  if
  :: may && !GROUP -> atomic { if :: st[c] == open -> begun[c] = true :: else fi; printf("gate %d begins call %d\n", g, c) }
  :: else
  fi;
  if
  :: may -> skip
  :: goto ask                                     /* no answer came */
  :: !may -> goto over
  fi;
  if
  :: atomic { ran[c]++; runs++; printf("call %d runs\n", c);
       assert(runs <= CAP);                       /* no more than the cap, however late */
       assert(ran[c] <= 1) }
  :: goto over                                    /* the host died */
  fi;
report:
  if :: reports == 2 -> goto over :: else -> reports++ fi;
  atomic {
    if
    :: st[c] == open -> reserved--; used++; st[c] = reported
    :: st[c] == swept -> if :: LATE :: else -> used++ fi; st[c] = reported
    :: st[c] == reported -> if :: TWICE :: else -> used++ fi
    :: else -> skip
    fi;
    printf("call %d is reported: used %d\n", c, used);
    assert(used + reserved <= CAP) }               /* nothing is counted twice */
  if :: goto report :: skip fi;                    /* no answer came */
over: skip
}

active proctype Sweeper() {
  byte c;
end: do
  :: atomic { SWEEP > 0 && (st[0] == open || st[1] == open || st[NC - 1] == open) ->   /* each in its turn */
       if
       :: st[c] == open && begun[c] && SWEEP == 2 -> reserved--; used++; st[c] = swept; printf("call %d is swept: used\n", c)
       :: st[c] == open && !(begun[c] && SWEEP == 2) -> reserved--; st[c] = swept; printf("call %d is swept: released\n", c)
       :: else
       fi; c = (c + 1) % NC }
  od
}

active proctype Death() {
  byte g;
end: do
  :: atomic { deaths < 2 -> deaths++; if :: g = 0 :: g = 1 fi; table[g] = 0; printf("gate %d dies and starts again\n", g);
       if
       :: BUILT -> byte c = 0; do :: c < NC -> if :: st[c] != none -> table[g] = table[g] | (1 << c) :: else fi; c++ :: else -> break od; c = 0
       :: else
       fi; g = 0 }
  od
}

init { atomic { byte n = 0; do :: n < NC -> run Host(n); n++ :: else -> break od } }

/* Each reservation ends, where calls are swept (with weak fairness). */
ltl ended { [] ((st[0] == open) -> <> (st[0] != open)) }
