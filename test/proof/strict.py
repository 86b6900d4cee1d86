"""Strict mode: the Leases, which lock slots and partitions without A2.

A pod object may vanish at any time, so pods do not end here. F + G is how long a Lease lasts. A version of it is over when F + G have passed since its
write was sent, by the clock of its holder, whose work has ended then. clocks.py has how another pod knows that, leases.py how Leases come and go.
"""

sorts = {
    "Pod": "pq",
    "Thing": "x",  # a slot or a partition
    "Slot": "s",  # each has a Lease
    "Version": "vabcrt",  # a write of a Lease, and the version that it leaves
}
fixed = {
    "at": ("Version", "Slot"),
    "by": ("Version", "Pod"),
    "tests": ("Version", "Version"),  # the version that it replaces
    "locks": ("Version Thing", "Bool"),
    "before": ("Version Version", "Bool"),  # it was sent before
}
facts = ["(all (a) (not (before a a)))", "(all (a b c) (=> (and (before a b) (before b c)) (before a c)))"]
state = {
    "lease": ("Slot", "Version"),  # that stands
    "stood": ("Version", "Bool"),
    "sent": ("Version", "Bool"),  # it may arrive: late, several times or never
    "last": ("Pod Version", "Bool"),  # the last write that this process of the pod has sent
    "over": ("Version", "Bool"),
    "shown": ("Version Thing", "Bool"),  # some T3 showed this version, and no other Lease that locks the thing and is not over
    "unbroken": ("Version Thing", "Bool"),  # the pod has locked the thing since this version, and it was never over
    "works": ("Pod Thing", "Bool"),
    "under": ("Pod", "Version"),  # the last renewal that was accepted as far as the pod knows: its time runs from the sending of that
    "first": ("Slot Thing", "Bool"),  # for the proof alone
}
means = {
    "now": ("p", "(lease (at (under p)))"),
    "same-holder": ("v", "(and (= (by v) (by (tests v))) (not (over (tests v))))"),
}
begins = [
    "(all (s) (and (stood (lease s)) (= (at (lease s)) s)))",
    "(all (v p) (and (not (sent v)) (not (last p v)) (not (over v)) (=> (stood v) (= v (lease (at v))))))",
    "(all (v x) (and (not (shown v x)) (not (unbroken v x)) (=> (stood v) (not (locks v x)))))",
    "(all (p x s) (and (not (works p x)) (not (first s x)) (stood (under p))))",
]
never = "(some (p q x) (and (works p x) (works q x) (not (= p q))))"
keeps = {
    "one is first": "(all (s st x) (=> (and (first s x) (first st x)) (or (= s st) (over (lease s)) (over (lease st)))))",
    "the first one locks": "(all (s x) (=> (first s x) (locks (lease s) x)))",
    "only the first one works": """(all (p x) (=> (works p x) (and (first (at (under p)) x) (= (by (now p)) p) (not (over (now p))) (= (by (under p)) p))))""",
    "T3 tells who is first": "(all (v x) (=> (and (unbroken v x) (shown v x)) (first (at v) x)))",
    "an unbroken lock is the holder's": "(all (v x) (=> (unbroken v x) (and (stood v) (locks (lease (at v)) x) (= (by (lease (at v))) (by v)))))",
    "late writes fit": """(all (p x v) (=> (and (works p x) (sent v) (= (by v) p) (= (at v) (at (under p))) (= (tests v) (now p)))
        (and (locks v x) (not (over v)))))""",
    "what stands": "(all (s) (and (= (at (lease s)) s) (stood (lease s))))",
    "the last renewal stood": "(all (p) (stood (under p)))",
    "one after the other": "(all (v) (=> (stood v) (or (= v (lease (at v))) (before v (lease (at v))))))",
    "no version comes back": """(all (v) (=> (sent v) (and (stood (tests v)) (= (at (tests v)) (at v)) (before (tests v) v)
        (=> (stood v) (not (= (tests v) (lease (at v))))))))""",
    "taken by right": "(all (v x) (=> (and (sent v) (locks (tests v) x)) (or (= (by (tests v)) (by v)) (over (tests v)))))",
    "the last write": """(all (p b c) (=> (last p b) (and (= (by b) p) (sent b)
        (=> (and (sent c) (= (by c) p)) (and (not (= (tests c) b)) (or (= c b) (before c b)))))))""",
    "who locks has sent": "(all (v x) (and (=> (and (stood v) (locks v x)) (sent v)) (=> (over v) (sent v)) (=> (shown v x) (stood v))))",
}
A_WRITE = "(and (= (by V) P) (not (sent V)) (not (stood V)) (stood (tests V)) (= (at (tests V)) (at V)) (all (v) (=> (or (sent v) (stood v)) (before v V))))"
steps = {
    # Secure, Renew, or a write that lets go, which locks nothing.
    "Secure": {"args": "P V", "needs": {
        "a write": A_WRITE,
        "it is free, its own, or expired": "(or (= (by (tests V)) P) (over (tests V)) (all (x) (not (locks (tests V) x))))",
        "its work stays locked": "(all (x) (=> (and (works P x) (= (at V) (at (under P)))) (locks V x)))",
    }, "does": {"sent v": "(or (sent v) (= v V))", "last p v": "(ite (= p P) (= v V) (last p v))"}},
    "arrives": {"args": "V", "needs": {"a write": "(sent V)", "it tests the resourceVersion": "(= (lease (at V)) (tests V))"}, "does": {
        "lease s": "(ite (= s (at V)) V (lease s))",
        "stood v": "(or (stood v) (= v V))",
        "unbroken v x": "(ite (= (at v) (at V)) (and (locks V x) (or (= v V) (and (unbroken v x) (same-holder V)))) (unbroken v x))",
        "first s x": "(and (first s x) (=> (= s (at V)) (and (locks V x) (same-holder V))))",
    }},
    "answer": {"args": "P V", "needs": {
        "its own write": "(last P V)", "it was accepted": "(stood V)", "of the slot that it works under": "(all (x) (=> (works P x) (= (at V) (at (under P)))))",
    }, "does": {"under p": "(ite (= p P) V (under p))"}},
    "T3": {"args": "S X", "needs": {
        "it shows the pod's own Lease": "(locks (lease S) X)",
        "it shows all Leases that have not expired": "(all (s) (=> (locks (lease s) X) (or (= s S) (over (lease s)))))",
    }, "does": {"shown v x": "(or (shown v x) (and (= v (lease S)) (= x X)))", "first s x": "(or (first s x) (and (= s S) (= x X)))"}},
    "work": {"args": "P X T", "needs": {
        "a Lease of its own": "(and (= (by T) P) (= (at T) (at (under P))))",
        "its last write has its answer": "(last P (under P))",
        "its time is not over": "(not (over (under P)))",
        "T3 showed no other lock": "(shown T X)",
        "after an interruption it does all steps again": "(unbroken T X)",
    }, "does": {"works p x": "(or (works p x) (and (= p P) (= x X)))"}},
    "stop": {"args": "P X", "needs": {}, "does": {"works p x": "(and (works p x) (not (and (= p P) (= x X))))"}},
    "Restart": {"args": "P", "needs": {}, "does": {"last p v": "(and (last p v) (not (= p P)))"}},
    # F + G pass for a version.
    "time": {"args": "V", "needs": {"sent": "(sent V)", "the work ends in time": "(all (x) (=> (works (by V) x) (before V (under (by V)))))"},
        "does": {"over v": "(or (over v) (= v V))"}},
}

P, Q = "P=p0", "P=p1"
ONE, TWO = {"Pod": 2, "Thing": 1, "Slot": 1, "Version": 5}, {"Pod": 2, "Thing": 1, "Slot": 2, "Version": 5}


def secures(p):
    return [f"Secure {p}", "arrives", f"answer {p}"]


def takes(p):
    return [*secures(p), "T3", f"work {p}"]


stories = {
    "a lost node": (ONE, [*takes(P), *secures(P), "Restart " + P, "stop " + P, "time", *takes(Q)]),
    "a partition moves": (TWO, [*takes(P), "stop " + P, "Secure " + P, "arrives", *takes(Q)]),
}
left_out = {
    "a Lease that has not expired is not taken": ("Secure", "it is free, its own, or expired", "true", ONE, takes(P) + takes(Q)),
    "its work stays locked": ("Secure", "its work stays locked", "true", ONE, [*takes(P), "Secure " + P, "arrives", *takes(Q)]),
    "a write tests the resourceVersion": ("arrives", "it tests the resourceVersion", "true", ONE,
        ["Secure " + Q, *takes(P), "arrives", "answer " + Q, "T3", "work " + Q]),
    "T3 (a partition under two ids)": ("work", "T3 showed no other lock", "true", TWO, [*secures(P), "work " + P, *secures(Q), "work " + Q]),
    "T3 shows all Leases": ("T3", "it shows all Leases that have not expired", "true", TWO, takes(P) + takes(Q)),
    "T3 again after an interruption": ("work", "after an interruption it does all steps again", "true", TWO,
        [*secures(P), "T3", "time", *takes(Q), *secures(P), "work " + P]),
    "the last write has its answer": ("work", "its last write has its answer", "true", ONE,
        [*secures(P), "T3", "Secure " + P, "work " + P, "arrives", *takes(Q)]),
    "no work begins after its time": ("work", "its time is not over", "true", ONE, [*secures(P), "T3", "time", "work " + P, *takes(Q)]),
    "only an accepted renewal counts": ("answer", "it was accepted", "true", ONE, [*takes(P), "Secure " + P, "answer " + P, "time", *takes(Q)]),
    "a renewal of another slot does not count": ("answer", "of the slot that it works under", "true", TWO | {"Version": 6},
        ["Secure P=p0 V=v0", "arrives", "answer " + P, "T3", "work " + P, *secures(P), "time V=v0", *takes(Q)]),
    "the work ends in time": ("time", "the work ends in time", "true", ONE, [*takes(P), "time", *takes(Q)]),
}
