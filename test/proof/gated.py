"""Gated pods, for which controllers lock and begin, beside peers and agents of the same owner.

A controller has no state here. All that it knows is an old receipt, which its write tests, or an old T3. Any number of controllers may use any of these at
any time, or never. So no election is needed, no cache of any age does harm, and whatever the map proposes is taken.
"""
import take
from take import P, Q, gives, size, takes

sorts, never = take.sorts, take.never
fixed = take.fixed | {"gated": ("Pod", "Bool"), "begun": ("Receipt", "Bool")}
facts = [*take.facts, "(all (b) (=> (begun b) (gated (of b))))"]
state = take.state | {"id": ("Pod Thing", "Bool")}  # the annotations that the program reads, idalloc.dev/id and idalloc.dev/identity
means = take.means | {"by-controller": ("b", "(and (new b) (gated (of b)) (stood (tests b)) (= (of (tests b)) (of b)) (all (x) (not (notes b x))))")}
begins = [*take.begins, "(all (p x) (and (not (id p x)) (not (begun (receipt p)))))"]
keeps = take.keeps | {
    "who has begun is first": "(all (p x) (=> (and (begun (receipt p)) (has p x)) (first p x)))",
    "an id is of who has begun": "(all (p x) (=> (and (id p x) (not (gone p))) (and (begun (receipt p)) (has p x))))",
    "a gated pod that works has begun": "(all (p x) (=> (and (gated p) (works p x)) (begun (receipt p))))",
    "what has begun stays": "(all (b) (=> (and (sent b) (gated (of b))) (not (begun (tests b)))))",
    "Begin was confirmed": "(all (b x) (=> (and (sent b) (begun b) (locks b x)) (shown (tests b) x)))",
    "no process writes for a gated pod": "(all (p b) (=> (last p b) (not (gated p))))",
    "what stands is unbroken": "(all (p x) (=> (has p x) (unbroken (receipt p) x)))",
}
SENT = {"sent b": "(or (sent b) (= b B))"}
BY_CONTROLLER = {"a write": "(by-controller B)", "it begins nothing": "(not (begun B))", "a begun pod is never withdrawn": "(not (begun (tests B)))"}
steps = {name: dict(step, needs=dict(step["needs"]), does=dict(step["does"])) for name, step in take.steps.items()}
for name in ("T2", "Give", "work"):
    steps[name]["needs"]["one writer: a process only writes for pods that are not gated"] = "(not (gated P))"
steps["foreign"]["needs"] |= {
    "no notes on gated pods": "(=> (gated P) (all (x) (not (notes R x))))",
    "A3: what has begun stays, and begins by Begin alone": """(=> (gated P) (and (= (begun R) (begun (receipt P)))
        (=> (begun R) (all (x) (= (locks R x) (locks (receipt P) x))))))""",
}
steps |= {
    "T2-by-controller": {"args": "B", "needs": BY_CONTROLLER | {"it locks": "(some (x) (locks B x))"}, "does": SENT},
    "Withdraw": {"args": "B", "needs": BY_CONTROLLER | {"it locks nothing": "(all (x) (not (locks B x)))"}, "does": SENT},
    # T is the pod's receipt as T3 showed it.
    "Begin": {"args": "B T", "needs": {
        "a write": "(by-controller B)", "it begins": "(begun B)", "a begun pod is never withdrawn": "(not (begun (tests B)))",
        "T3 showed no other lock": "(all (x) (=> (locks B x) (shown T x)))",
        "it tests the receipt that T3 showed": "(= T (tests B))",
    }, "does": SENT},
    # A container of a gated pod starts, or starts again.
    "container": {"args": "P X", "needs": {"a pod": "(and (gated P) (not (gone P)))", "it reads what Begin wrote": "(id P X)"},
        "does": {"works p x": "(or (works p x) (and (= p P) (= x X)))"}},
    # The annotations that the program reads were removed: they are written again.
    "Publish": {"args": "P", "needs": {"a pod": "(not (gone P))", "it has begun": "(begun (receipt P))"},
        "does": {"id p x": "(ite (= p P) (locks (receipt P) x) (id p x))"}},
    # Another writer changes these annotations. N is what they say then.
    "foreign-id": {"args": "P N", "functions": {"N": "(Thing) Bool"}, "needs": {"A3: an id that is not the pod's": "(all (x) (=> (N x) (id P x)))"},
        "does": {"id p x": "(ite (= p P) (N x) (id p x))"}},
}
needs = steps["arrives"]["needs"]
del needs["it tests the receipt that it replaces"], needs["it writes what was never there before"]
needs |= {
    "T2 tests the receipt that it replaces": "(=> (not (begun B)) (= (receipt P) (tests B)))",
    "Begin tests the receipt that it replaces": "(=> (begun B) (= (receipt P) (tests B)))",
    "T2 writes what was never there before": "(=> (not (begun B)) (= R B))",
    "Begin writes what was never there before": "(=> (begun B) (= R B))",
}
steps["arrives"]["does"]["id p x"] = "(ite (and (= p P) (begun B)) (locks B x) (id p x))"

T2 = ["T2-by-controller", "arrives"]


def begins_work(p):
    return [*T2, "T3 " + p, "Begin", "arrives " + p, "container " + p]


stories = {
    "one after the other": (size(6), [*begins_work(P), "foreign-id " + P, "Publish " + P, "stop " + P, "container " + P, "stop " + P, "end " + P, *begins_work(Q)]),
    "a withdrawal, and a peer": (size(8), [*T2, "T3 " + P, "Begin", "Withdraw", "arrives", *takes(Q), "Restart " + Q, "foreign " + Q, "stop " + Q, "Give " + Q]),
}
left_out = {
    "Begin: T3": ("Begin", "T3 showed no other lock", "true", size(6), [*begins_work(P), *T2, "Begin", "arrives", "container " + Q]),
    "Begin tests the receipt that T3 showed": ("Begin", "it tests the receipt that T3 showed", "(= (of T) (of B))", size(8),
        [*T2, "T3 " + P, "Withdraw", "arrives", *begins_work(Q), *T2, "Begin", "arrives", "container " + P]),
    "Begin tests the receipt that it replaces": ("arrives", "Begin tests the receipt that it replaces", "true", size(7),
        [*T2, "T3 " + P, "Begin", "Withdraw", "arrives", *begins_work(Q), "arrives", "container " + P]),
    "Begin writes what was never there": ("arrives", "Begin writes what was never there before", "(=> (begun B) (= R (tests B)))", size(6),
        [*T2, "T3 " + P, "Begin", "Withdraw", "arrives", "container " + P, "arrives", *takes(Q)]),
    "T2 and Withdraw test the receipt that they replace": ("arrives", "T2 tests the receipt that it replaces", "true", size(6),
        ["Withdraw", "T2-by-controller", *begins_work(P)[1:], "arrives", *takes(Q)]),
    "T2 and Withdraw write what was never there": ("arrives", "T2 writes what was never there before", "(=> (not (begun B)) (or (= R B) (stood R)))", size(8),
        [*T2, "T3 " + P, "Begin", "Withdraw", "arrives", *takes(Q), "T2-by-controller", "arrives", "arrives", "container " + P]),
    "a begun pod is never withdrawn": ("Withdraw", "a begun pod is never withdrawn", "true", size(6), [*begins_work(P), "Withdraw", "arrives", *takes(Q)]),
    "a begun pod keeps its slot": ("T2-by-controller", "a begun pod is never withdrawn", "true", {"Pod": 2, "Thing": 2, "Receipt": 6},
        [*begins_work(P), *T2, *takes(Q)]),
    "Begin writes the id": ("container", "it reads what Begin wrote", "(locks (receipt P) X)", size(6), [*begins_work(P), *T2, "container " + Q]),
    "T3 shows peers": ("T3", "it shows the locks of all live pods", "(all (q) (=> (and (has q X) (gated q)) (= q P)))", size(6), [*takes(P), *begins_work(Q)]),
    "T3 of a peer shows gated pods": ("T3", "it shows the locks of all live pods", "(all (q) (=> (and (has q X) (not (gated q))) (= q P)))", size(6),
        [*begins_work(P), *takes(Q)]),
    "one writer of a receipt": ("Give", "one writer: a process only writes for pods that are not gated", "true", size(6),
        [*begins_work(P)[:-1], "Give " + P, "arrives", *takes(Q), "container " + P]),
    "A3: the id": ("foreign-id", "A3: an id that is not the pod's", "true", size(6), [*begins_work(P), *T2, "foreign-id " + Q, "container " + Q]),
    "A3: the receipt": ("foreign", "A3: what has begun stays, and begins by Begin alone", "true", size(6),
        [*begins_work(P), "stop " + P, "foreign " + P, *takes(Q), "container " + P]),
    "only a begun pod is told an id": ("Publish", "it has begun", "true", size(6), [*begins_work(P), *T2, "Publish " + Q, "container " + Q]),
    "A2": ("end", "A2: after its work", "true", size(6), [*begins_work(P), "end " + P, *takes(Q)]),
    "T3 of a peer": ("work", "T3 showed no other lock, or it is noted", "(unbroken T X)", size(6), [*begins_work(P), "T2", "arrives", "work " + Q]),
}
