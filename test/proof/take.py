"""Take and Give: pods whose processes lock for them (peers and agents), in default mode.

A pod is *first* on a thing from the moment of a T3 that shows its lock and no other pod's, until its receipt does not lock the thing any more. Two cannot
be first: the later T3 would have shown the other's lock. All else says that only who is first works. No order of the T2s is needed.
"""

sorts = {
    "Pod": "pq",  # one UID. A pod that replaces another one under its name is another Pod, and a write for the old one fails
    "Thing": "x",  # a slot or a partition
    "Receipt": "rabct",  # a write of a receipt, and the receipt that it leaves
}
fixed = {
    "of": ("Receipt", "Pod"),
    "tests": ("Receipt", "Receipt"),  # the receipt that it replaces
    "locks": ("Receipt Thing", "Bool"),
    "notes": ("Receipt Thing", "Bool"),  # has a token for it
}
facts = []
state = {
    "receipt": ("Pod", "Receipt"),  # that stands on the pod
    "stood": ("Receipt", "Bool"),  # now or before
    "sent": ("Receipt", "Bool"),  # its write may arrive: late, several times or never
    "last": ("Pod Receipt", "Bool"),  # the last write that this process of the pod has sent
    "shown": ("Receipt Thing", "Bool"),  # some T3 showed this receipt, and no other live pod that locks the thing
    "unbroken": ("Receipt Thing", "Bool"),  # the pod has locked the thing from this receipt until now
    "works": ("Pod Thing", "Bool"),
    "gone": ("Pod", "Bool"),
    "first": ("Pod Thing", "Bool"),  # for the proof alone: no step looks at it
}
means = {
    "has": ("p x", "(and (locks (receipt p) x) (not (gone p)))"),
    "is-of": ("b p", "(and (= (of b) p) (not (gone p)))"),
    "new": ("b", "(and (not (sent b)) (not (stood b)))"),
    "replaces": ("b p", "(and (new b) (is-of b p) (stood (tests b)) (= (of (tests b)) p))"),
    "confirmed": ("p x", "(some (t) (and (= (of t) p) (unbroken t x) (shown t x)))"),
}
begins = [
    "(all (p) (and (not (gone p)) (stood (receipt p)) (= (of (receipt p)) p)))",
    "(all (b p) (and (not (sent b)) (not (last p b)) (=> (stood b) (= b (receipt (of b))))))",
    "(all (b x) (and (not (shown b x)) (not (unbroken b x))))",
    "(all (p x) (and (not (locks (receipt p) x)) (not (notes (receipt p) x)) (not (works p x)) (not (first p x))))",
]
never = "(some (p q x) (and (works p x) (works q x) (not (= p q))))"
keeps = {
    "one is first": "(all (p q x) (=> (and (first p x) (first q x)) (= p q)))",
    "the first one locks": "(all (p x) (=> (first p x) (has p x)))",
    "only the first one works": "(all (p x) (=> (works p x) (first p x)))",
    "T3 tells who is first": "(all (b x) (=> (and (unbroken b x) (shown b x)) (first (of b) x)))",
    "a note tells who is first": "(all (p x) (=> (and (notes (receipt p) x) (not (gone p))) (first p x)))",
    "late writes fit": """(all (b x) (=> (and (sent b) (= (tests b) (receipt (of b))) (not (gone (of b))))
        (and (=> (works (of b) x) (locks b x)) (=> (notes b x) (and (locks b x) (first (of b) x))))))""",
    "what stands": "(all (p) (and (= (of (receipt p)) p) (stood (receipt p))))",
    "no receipt comes back": "(all (b) (=> (sent b) (and (stood (tests b)) (= (of (tests b)) (of b)) (=> (stood b) (not (= (tests b) (receipt (of b))))))))",
    "no write tests the last one": "(all (p b c) (=> (last p b) (and (= (of b) p) (sent b) (not (and (sent c) (= (tests c) b))))))",
    "T3 shows what stood": "(all (b x) (=> (shown b x) (and (stood b) (locks b x))))",
}
# A process sends a receipt that replaces one that it has read, however old that is.
SEND = {
    "a write": "(replaces B P)",
    "its work stays locked": "(all (x) (=> (works P x) (locks B x)))",
    "it notes what it holds": "(all (x) (=> (notes B x) (and (locks B x) (or (works P x) (notes (tests B) x) (confirmed P x)))))",
}
SENT = {"sent b": "(or (sent b) (= b B))", "last p b": "(ite (= p P) (= b B) (last p b))"}
# The receipt of pod P is R from now on.
STANDS = {
    "stood b": "(or (stood b) (= b R))",
    "unbroken b x": "(ite (= (of b) P) (and (locks R x) (or (= b R) (unbroken b x))) (unbroken b x))",
    "first p x": "(and (first p x) (=> (= p P) (locks R x)))",
    "receipt p": "(ite (= p P) R (receipt p))",
}
steps = {
    "T2": {"args": "P B", "needs": SEND | {"it locks": "(some (x) (locks B x))"}, "does": SENT},
    "Give": {"args": "P B", "needs": SEND | {"it locks no more": "(all (x) (=> (locks B x) (locks (tests B) x)))"}, "does": SENT},
    # The API server accepts B. R is the receipt that stands then.
    "arrives": {"args": "P B R", "needs": {
        "a write": "(and (sent B) (is-of B P) (= (of R) P) (all (x) (and (= (locks R x) (locks B x)) (= (notes R x) (notes B x)))))",
        "it tests the receipt that it replaces": "(= (receipt P) (tests B))",
        "it writes what was never there before": "(= R B)",
    }, "does": STANDS | {"stood b": "(or (stood b) (= b R) (= b B))", "last p b": "(or (last p b) (and (last p B) (= b R)))"}},
    # The API server makes a list that shows P's receipt: for the pod itself or for a controller, which use it later or never.
    "T3": {"args": "P X", "needs": {
        "it shows the pod's own receipt": "(has P X)",
        "it shows the locks of all live pods": "(all (q) (=> (has q X) (= q P)))",
    }, "does": {"shown b x": "(or (shown b x) (and (= b (receipt P)) (= x X)))", "first p x": "(or (first p x) (and (= p P) (= x X)))"}},
    # Work begins, begins again, or that of an earlier process goes on. T is the receipt of the pod that T3 showed.
    "work": {"args": "P X T", "needs": {
        "a pod": "(is-of T P)",
        "its last write has its answer": "(last P (receipt P))",
        "T3 showed no other lock, or it is noted": "(or (shown T X) (and (= T (receipt P)) (notes T X)))",
        "the lock is unbroken": "(or (unbroken T X) (and (= T (receipt P)) (notes T X)))",
    }, "does": {"works p x": "(or (works p x) (and (= p P) (= x X)))"}},
    "stop": {"args": "P X", "needs": {}, "does": {"works p x": "(and (works p x) (not (and (= p P) (= x X))))"}},
    # The process ends. Its work may go on, and its writes may arrive.
    "Restart": {"args": "P", "needs": {}, "does": {"last p b": "(and (last p b) (not (= p P)))"}},
    # A3, as weak as it may be: another writer may change a receipt.
    "foreign": {"args": "P R", "needs": {
        "a receipt": "(and (is-of R P) (not (sent R)))",
        "A3: the work stays locked, and it notes no more": """(all (x) (and (=> (works P x) (locks R x))
            (=> (notes R x) (and (notes (receipt P) x) (locks R x)))))""",
        "a write that replaces it tests the resourceVersion": "(not (stood R))",
    }, "does": STANDS},
    "end": {"args": "P", "needs": {"A2: after its work": "(all (x) (not (works P x)))"}, "does": {
        "gone p": "(or (gone p) (= p P))",
        "unbroken b x": "(and (unbroken b x) (not (= (of b) P)))",
        "first p x": "(and (first p x) (not (= p P)))",
    }},
}

P, Q = "P=p0", "P=p1"


def size(n):
    return {"Pod": 2, "Thing": 1, "Receipt": n}


def takes(p):
    return [f"T2 {p}", "arrives", f"T3 {p}", f"work {p}"]


def gives(p):
    return [f"stop {p}", f"Give {p}", "arrives"]


stories = {
    "one after the other": (size(6), [*takes(P), *gives(P), *takes(Q), "stop " + Q, "end " + Q]),
    "a restart, another writer and a note": (size(7), ["foreign " + Q, *takes(P), "Restart " + P, "T2 " + P, "arrives", "work " + P, "T2 " + P, "arrives",
        "Restart " + P, "T2 " + P, "arrives", "work " + P]),
}
# What is left out: the step, its condition, what it needs instead, and the history that shows the harm.
left_out = {
    "T3": ("work", "T3 showed no other lock, or it is noted", "(unbroken T X)", size(6), ["T2", "arrives", "work", "T2", "arrives", "work"]),
    "T3 shows the locks of all live pods": ("T3", "it shows the locks of all live pods", "true", size(6), takes(P) + takes(Q)),
    "the lock that T3 showed is unbroken": ("work", "the lock is unbroken", "true", size(7),
        ["T2 " + P, "arrives", "T3 " + P, "Give " + P, "arrives", *takes(Q), "T2 " + P, "arrives", "work " + P]),
    "the last write has its answer": ("work", "its last write has its answer", "true", size(6),
        ["T2 " + P, "arrives", "T3 " + P, "Give " + P, "Restart " + P, "work " + P, "arrives", *takes(Q)]),
    "Give: the work has stopped": ("Give", "its work stays locked", "true", size(6), [*takes(P), "Give " + P, "arrives", *takes(Q)]),
    "T2 keeps the lock of work": ("T2", "its work stays locked", "true", {"Pod": 2, "Thing": 2, "Receipt": 6},
        [*takes(P), "T2 " + P, "arrives", *takes(Q)]),
    "it notes what it holds": ("T2", "it notes what it holds", "(all (x) (=> (notes B x) (locks B x)))", size(6),
        [*takes(P), "T2 " + Q, "arrives", "work " + Q]),
    "Give notes nothing new": ("Give", "it notes what it holds", "(all (x) (=> (notes B x) (locks B x)))", size(8),
        [*takes(P), "T2 " + Q, "arrives", "Give " + Q, "arrives", "work " + Q]),
    "a write tests the receipt that it replaces": ("arrives", "it tests the receipt that it replaces", "true", size(6),
        ["Give " + P, "T2 " + P, "T2 " + P, "arrives", "T3 " + P, "work " + P, "arrives B=r5", *takes(Q)]),
    "what it writes was never there": ("arrives", "it writes what was never there before", "(or (= R B) (stood R))", size(7),
        ["T2 " + P, "arrives", "Give " + P, "T2 " + P, "arrives", "T3 " + P, "work " + P, "arrives", *takes(Q)]),
    "A3": ("foreign", "A3: the work stays locked, and it notes no more", "true", size(6), [*takes(P), "foreign " + P, *takes(Q)]),
    "a write that replaces another writer's receipt tests the resourceVersion": ("foreign", "a write that replaces it tests the resourceVersion", "true", size(7),
        ["foreign " + P, "Give " + P, "Restart " + P, *takes(P), "foreign " + P, "arrives", *takes(Q)]),
    "A2": ("end", "A2: after its work", "true", size(6), [*takes(P), "end " + P, *takes(Q)]),
}
