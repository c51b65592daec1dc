/* Withdrawal and expiry (verification.md, rules 3 and 16): a grant and one delegated from it. Either may be suspended and resumed, or revoked for
 * good; the upper expires. Appends are atomic, and places decide; what a worker read before may be old.
 *
 *   ABOVE  1: a withdrawal or the end of the upper grant is the lower's too; 0: only its own counts
 *   PLACE  1: an action is judged at its place; 0: where the worker looked
 *   BEGUN  1: an action that a stop met without an open start is never run; 0: it is, once its grant is resumed
 *   SERVES 1: a start serves one execution; 0: any number
 *   FINAL  1: a resume ends a suspension alone; 0: a revocation too
 *   LATER  1: a `finish` may become a `stop`, and nothing else; 0: a `stop` may become a `finish`
 */
#ifndef ABOVE
#define ABOVE 1
#endif
#ifndef PLACE
#define PLACE 1
#endif
#ifndef BEGUN
#define BEGUN 1
#endif
#ifndef SERVES
#define SERVES 1
#endif
#ifndef FINAL
#define FINAL 1
#endif
#ifndef LATER
#define LATER 1
#endif
#define UPPER 0
#define LOWER 1
#define NR 4                     /* records of the owner */

/* What the log says of each grant. */
mtype = { stands, suspended, revoked };
mtype is[2] = stands;
bool isStop[2];
bool expired;                    /* the upper's end has come */
/* Ghosts. */
byte stops;                      /* that have met what was allowed before */
bool wasRevoked[2];

#define OUT(g) (is[g] != stands)
#define ENDED (OUT(LOWER) || (ABOVE && (OUT(UPPER) || expired)))
#define STOPPED ((OUT(LOWER) && isStop[LOWER]) || (ABOVE && OUT(UPPER) && isStop[UPPER]))

inline withdraw(g, how, stop) {
  if
  :: is[g] == stands -> isStop[g] = stop
  :: is[g] != stands && stop && !isStop[g] -> isStop[g] = true
  :: is[g] != stands && !LATER -> isStop[g] = stop
  :: else -> skip
  fi;
  if :: is[g] != revoked -> is[g] = how :: else -> skip fi;
  if :: how == revoked -> wasRevoked[g] = true :: else -> skip fi;
  if :: stop -> stops++ :: else -> skip fi;
  printf("grant %d: %e, stop %d\n", g, how, stop)
}

active proctype Owner() {
  byte n, g;
end: do
  :: atomic { n < NR -> n++;
       if :: g = UPPER :: g = LOWER fi;
       if
       :: true -> withdraw(g, suspended, true)
       :: true -> withdraw(g, suspended, false)
       :: true -> withdraw(g, revoked, true)
       :: is[g] == suspended -> is[g] = stands; printf("grant %d resumed\n", g)
       :: !FINAL && is[g] == revoked -> is[g] = stands; printf("grant %d resumed\n", g)
       fi; g = 0 }
  :: atomic { !expired -> expired = true; printf("the upper grant ends\n") }
  od
}

active [2] proctype Worker() {
  byte met, ran; bool hasStart;
end0: atomic { !ENDED -> printf("W%d looks\n", _pid) }
  atomic {                       /* the action */
    if :: PLACE && ENDED -> goto over :: else -> skip fi;
    printf("W%d is allowed\n", _pid);
    assert(is[LOWER] == stands && is[UPPER] == stands && !expired && !wasRevoked[LOWER] && !wasRevoked[UPPER]);
    met = stops }
  do
  :: atomic { !hasStart && ran == 0 -> /* its start */
       if :: (BEGUN && stops != met) || STOPPED -> goto over :: else -> skip fi;
       hasStart = true; printf("W%d begins\n", _pid);
       assert(stops == met) }    /* nothing begins that a stop has met */
  :: atomic { ran < 2 && (hasStart || (BEGUN && stops == met) || (!BEGUN && !STOPPED)) ->   /* an execution that is no violation */
       assert(hasStart || stops == met);
       ran++; if :: SERVES -> hasStart = false :: else -> skip fi;
       printf("W%d records its run\n", _pid);
       assert(ran <= 1);
       if :: SERVES -> goto over :: else -> skip fi }
  :: break
  od;
over: skip
}

/* What is revoked stays so. */
ltl final { [] ((wasRevoked[LOWER] -> is[LOWER] == revoked) && (wasRevoked[UPPER] -> is[UPPER] == revoked)) }
/* A stop is never taken back but by the resume of a suspension. */
ltl stop { [] (((is[LOWER] == revoked && isStop[LOWER]) -> [] (isStop[LOWER])) && ((is[UPPER] == revoked && isStop[UPPER]) -> [] (isStop[UPPER]))) }
