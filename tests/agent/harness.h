/* What harness.c and world.py share; world.py reads these names and numbers from here. */
enum operations {
    OP_WORK = 1,   /* the clock goes on by a; also backwards */
    OP_CALL = 2,   /* function a, by the site for it */
    OP_INDIRECT = 3, /* function a, by the one indirect site */
    OP_TAIL = 4,   /* function a, in place of this one */
    OP_RETURN = 5,
    OP_JUMP = 6,   /* to the frame a above; b: longjmp is called for it */
    OP_HIDE = 7,   /* an unwinder looks at the stack */
    OP_SHOW = 8,   /* an exception is caught */
    OP_ARM = 9,    /* the next call, jump or return is interrupted behind a instructions of darc's: script b
                      runs */
    OP_RESUME = 10, /* thread a goes on until it yields */
    OP_YIELD = 11,
    OP_DEBUGGER = 12, /* the debugger does its a-th thing, with b */
    OP_END = 13,   /* what a thread calls last */
    OP_TRACE = 14, /* all of darc's instructions in the next call, jump or return are noted */
};

enum events {
    EV_CALL = 1,   /* a: function, b: kind of site (OP_CALL, …), c: slot of the caller */
    EV_ARRIVE = 2, /* a: function, b: slot, c: the caller's address */
    EV_LEAVE = 3,  /* b: slot */
    EV_BACK = 4,   /* b: slot of the frame that goes on */
    EV_JUMP = 5,   /* b: slot of the frame that goes on */
    EV_BEGIN = 6,  /* the handler of an interruption begins; a: its script */
    EV_FINISH = 7, /* it has returned */
    EV_DEBUGGER = 8,
    EV_SNAP = 9,   /* a: offset of what was counted, by thread, in the snapshots */
    EV_MISSED = 10, /* an interruption that did not come, as there were fewer instructions */
    EV_WRONG = 11, /* a: enum wrong */
    EV_START = 12, /* of a thread; b: its thread pointer */
};

enum wrong {
    WRONG_REGISTER = 1,
    WRONG_STACK_POINTER = 2,
    WRONG_FRAME = 3,   /* bytes of a frame */
    WRONG_RED_ZONE = 4,
    WRONG_VECTOR = 5,
    WRONG_DIRECTION = 6,
    WRONG_CALLER = 7,
    WRONG_FAULT = 8,
    WRONG_HIDDEN = 9,  /* an unwinder finds an address of darc's */
    WRONG_CONTROL = 10, /* of x87 or MXCSR */
};
