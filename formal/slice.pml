/* Slices (verification.md, rule 17): a parent ledger sets 1 of its cap 2 aside, a child ledger spends it. There is no common lock, and what one
 * ledger reads of the other may be old when it goes on.
 *
 *   CLOSE 1: the parent settles only by a checkpoint of a child whose grant is stopped and which has nothing open; 0: by any checkpoint
 *   FREE  1: the parent may release the slice as any open action; 2: only while no start on it stands in the parent; 0: never
 *   BEGIN 1: the child's grant is made only once a start on the slice stands in the parent
 *   ONE   1: a child makes one grant under a slice; 0: as many as it likes
 *   CHECK 1: what runs in both ledgers is never above the parent's cap; 2: nor do both together count less than what ran, once it is settled
 */
#ifndef CLOSE
#define CLOSE 1
#endif
#ifndef FREE
#define FREE 2
#endif
#ifndef BEGIN
#define BEGIN 1
#endif
#ifndef ONE
#define ONE 1
#endif
#ifndef CHECK
#define CHECK 1
#endif
#define CAP 2

byte pUsed, pHeld, ran, ranInChild;
mtype = { none, open, settled };
mtype slice = none;
bool begun;
byte grants;                     /* that the child made under the slice */
bool stopped;
byte cUsed, cHeld;
byte note;                       /* what a checkpoint of the child says was used */
bool isNoted, isClosed;

inline count() {
  ran++;
#if CHECK == 1
  assert(ran <= CAP)
#endif
}

active proctype ParentWorker() {
  byte n;
end: do
  :: atomic { n < 3 && pUsed + pHeld + 1 <= CAP -> n++; pHeld++; printf("parent authorizes\n") };
     atomic { count(); printf("parent runs\n") };
     atomic { pHeld--; pUsed++ }
  od
}

active proctype ParentKeeper() {
end: do
  :: atomic { slice == none && pUsed + pHeld + 1 <= CAP -> slice = open; pHeld++; printf("parent sets a slice aside\n") }
  :: atomic { BEGIN && slice == open && !begun -> begun = true; printf("parent starts the slice\n") }
  :: atomic { slice == open && isNoted && (!CLOSE || isClosed) -> slice = settled; pHeld--; pUsed = pUsed + note; printf("parent settles by %d\n", note);
#if CHECK == 2
       assert(note == ranInChild)
#endif
     }
  :: atomic { slice == open && (FREE == 1 || (FREE == 2 && !begun)) -> slice = settled; pHeld--; printf("parent releases the slice\n") }
  od
}

active proctype Child() {
  byte n;
end0: atomic { slice == open -> printf("child reads the slice\n") }
end1: if :: BEGIN && begun :: !BEGIN fi;
  atomic { grants++; printf("child grants\n") }
end: do
  :: atomic { !ONE && grants == 1 && !stopped -> grants++; printf("child grants again\n") }
  :: atomic { !stopped && n < 2 && cUsed + cHeld + 1 <= grants -> n++; cHeld++; printf("child authorizes\n") };
     atomic { count(); ranInChild++; printf("child runs\n") };
     atomic { cHeld--; cUsed++ }
  od
}

active proctype ChildKeeper() {
end: do
  :: atomic { grants > 0 && !stopped -> stopped = true; printf("child stops its grant\n") }
  :: atomic { grants > 0 && !isClosed -> isNoted = true; note = cUsed; isClosed = (stopped && cHeld == 0); printf("child's checkpoint: used %d, open %d\n", cUsed, cHeld) }
  od
}
