/* Several services for one ledger in a database: the session that has the lock leads and decides, the others forward. A session may end while
 * its holder believes in its lock, since its connection broke or since another ended it, so as not to wait for a holder that is silent; a
 * leader may be paused before any of its appends. Each call reserves 1 of the cap.
 *
 *   FENCE   1: an append names the end that its service knows, and is refused where the ledger has another; 0: it is not
 *   RELOAD  1: who takes over reads what others have appended before it decides; 0: only where the end is
 *   KEYED   1: a call that is forwarded again is known by its key in the ledger; 0: by whom it was decided
 *   STEP    1: a leader whose append is refused steps down; 0: it appends again upon the new end, with what it decided before
 */
#ifndef FENCE
#define FENCE 1
#endif
#ifndef RELOAD
#define RELOAD 1
#endif
#ifndef KEYED
#define KEYED 1
#endif
#ifndef STEP
#define STEP 1
#endif
#define NS 2
#define NC 3
#define CAP 2
#define NOBODY 9

/* The database: who has the lock, and the records: which call each decides. */
byte holder = NOBODY;
byte size;
byte reserved;
bool inLedger[NC];
byte allowed[NC], runs;
/* What each service knows. */
bool leads[NS];
byte end_[NS], reservedBy[NS];
byte knows[NS];                  /* bits of calls */
byte term[NS];                   /* how often it has stepped down: what it decided before is dropped */
byte lost;

#define HAS(s, c) (knows[s] & (1 << c))

inline learn(s) {
  end_[s] = size;
  if
  :: RELOAD -> reservedBy[s] = reserved;
     if
     :: KEYED -> knows[s] = (inLedger[0] -> 1 : 0) | (inLedger[1] -> 2 : 0) | (inLedger[2] -> 4 : 0)
     :: else
     fi
  :: else
  fi
}

active [NS] proctype Service() {
  byte me = _pid;
end: do
  :: atomic { holder == NOBODY && !leads[me] -> holder = me; leads[me] = true; learn(me); printf("S%d leads, end %d\n", me, end_[me]) }
  :: atomic { holder == me && lost < 2 -> holder = NOBODY; lost++; printf("S%d loses its session\n", me) }
  od
}

proctype Call(byte c) {
  byte s, tries, t;
ask:
  if :: tries == 2 -> goto over :: else -> tries++ fi;
  atomic { if :: leads[0] -> s = 0 :: leads[1] -> s = 1 fi; printf("call %d to S%d\n", c, s) }
  atomic {                       /* decided in the memory of a service */
    if
    :: !leads[s] -> goto ask
    :: leads[s] && HAS(s, c) -> goto answered
    :: leads[s] && !HAS(s, c) && reservedBy[s] + 1 <= CAP -> reservedBy[s]++; t = term[s]
    :: else -> goto over
    fi }
append:
  atomic {
    if
    :: STEP && term[s] != t -> goto ask
    :: else -> skip
    fi;
    if
    :: !FENCE || end_[s] == size ->
       size++; end_[s] = (FENCE -> size : end_[s] + 1); reserved++; inLedger[c] = true; knows[s] = knows[s] | (1 << c); allowed[c]++;
       printf("S%d records call %d, size %d\n", s, c, size);
       assert(FENCE || end_[s] == size);           /* the chain has no fork */
       assert(allowed[c] <= 1);                    /* one request, one decision */
       assert(reserved <= CAP)
    :: else ->
       printf("S%d is refused\n", s);
       if
       :: STEP -> leads[s] = false; term[s]++; if :: holder == s -> holder = NOBODY :: else fi; goto ask
       :: else -> end_[s] = size; goto append
       fi
    fi }
  if :: skip :: goto ask fi;      /* no answer came: it is asked again */
answered:
  atomic { runs++; printf("call %d runs\n", c); assert(runs <= CAP) }
over: skip
}

init { atomic { run Call(0); run Call(1); run Call(2) } }
