// ShortTurns: how long the kernel lets threads of a daemon run before it looks at who else waits.
//
// One request passes five to eight threads, each of which runs for some ten microseconds. A thread
// that is woken while others copy megabytes waits until their turn ends, 1.4 to 3 ms by default,
// and so at every hop. A thread of short turns is scheduled sooner, and asks no more of the
// processor in all: its share stays the same. Needs no privilege.
//
// Source: EEVDF's request size, sched_setattr(2) since Linux 6.12. Older kernels: nothing happens.
#pragma once

#include "common/base/time.h"

namespace weir {

// Of the calling thread, and of all that it starts later. Other policies than the normal one
// (SCHED_OTHER) stay as they are.
void TakeShortTurns();

// The calling thread runs as soon as it is woken, before all that take turns, where the process may
// ask for that (CAP_SYS_NICE): true; else nothing happens. For threads that work for some
// microseconds and sleep again. Threads that it starts take turns.
bool RunAheadOfTurns();

// Whether RunAheadOfTurns had the calling thread run ahead, and nothing has changed that.
bool RunsAheadOfTurns();

// The calling thread takes turns, also if RunAheadOfTurns had it run ahead, and weighs as much as a
// thread may where they are handed out, if the process may ask for that (CAP_SYS_NICE); else
// nothing happens. Where the kernel divides the processors among services or sessions first
// (control groups, autogroup), that is within this process: it goes before its other threads and
// takes nothing from other processes. Threads that it starts weigh what others do. Other policies
// than the normal one that the process was given stay as they are.
void WeighMost();

// What the kernel says of the calling thread; 0: it does not tell.
Duration TurnOfThisThread();

}  // namespace weir
