"""Owners that split and merge: gated pods of ReplicaSets that change their owner.

A Thing is an id here. A receipt locks it under the name of an owner, which a begun pod keeps for life. Two pods are *related*, and must not work under
one id, if they lock under one name, or if ReplicaSets of one template have them: these may have one owner now, or come to have one. A pod that was
relabelled has left its ReplicaSet, and only its name finds it.
"""
import gated
from gated import P, Q, T2, begins_work

sorts = gated.sorts | {"ReplicaSet": "s", "Owner": "o", "View": "v"}
fixed = gated.fixed | {
    "name": ("Receipt", "Owner"),  # under which it locks
    "in": ("Pod", "ReplicaSet"),  # its ReplicaSet
    "sees": ("View ReplicaSet", "Owner"),  # what a controller knows of a ReplicaSet's owner, as old as it may be
}
facts = [*gated.facts, "(all (p) (gated p))"]
state = gated.state | {
    "owner": ("ReplicaSet", "Owner"),  # an orphan is its own
    "left": ("Pod", "Bool"),  # it was relabelled
}
means = gated.means | {
    "kin": ("p q", "(not (or (left p) (left q)))"),
    "one-name": ("p q", "(= (name (receipt p)) (name (receipt q)))"),
    "related": ("p q", "(or (kin p q) (one-name p q))"),
    "of-owner": ("q o", "(and (not (left q)) (= (owner (in q)) o))"),
}
begins = [*gated.begins, "(all (p) (not (left p)))"]
never = "(some (p q x) (and (works p x) (works q x) (not (= p q)) (related p q)))"
keeps = gated.keeps | {
    "one is first": "(all (p q x) (=> (and (first p x) (first q x) (related p q)) (= p q)))",
    "an unbroken lock has one name": "(all (b x) (=> (unbroken b x) (= (name b) (name (receipt (of b))))))",
    "gated pods note nothing": "(all (b x) (=> (or (sent b) (stood b)) (not (notes b x))))",
    "Begin keeps the name": "(all (b) (=> (and (sent b) (begun b)) (= (name b) (name (tests b)))))",
}
steps = {name: dict(step, needs=dict(step["needs"]), does=dict(step["does"])) for name, step in gated.steps.items()
    if name not in ("T2", "Give", "work", "foreign", "Restart")}
arrives = steps["arrives"]
arrives["needs"]["a name"] = "(= (name R) (name B))"
SAME_NAME = "(= (name R) (name (receipt P)))"
arrives["does"] |= {
    "unbroken b x": f"(ite (= (of b) P) (and (locks R x) (or (= b R) (and (unbroken b x) {SAME_NAME}))) (unbroken b x))",
    "first p x": f"(and (first p x) (=> (= p P) (and (locks R x) {SAME_NAME})))",
}
steps["Begin"]["needs"]["it keeps the name"] = "(= (name B) (name (tests B)))"
# O is the pod's owner, as the controller knows it by V.
FROZEN = "frozen: no ReplicaSet with such pods has another owner, as T3 reads them"
steps["T3"]["args"] = "P X O V"
steps["T3"]["needs"] = {
    "it shows the pod's own receipt": "(has P X)",
    "the first list shows the locks under the pod's name": "(all (q) (=> (and (has q X) (one-name q P)) (= q P)))",
    "the second list shows the locks of the owner's pods, under any name": "(all (q) (=> (and (has q X) (of-owner q O)) (= q P)))",
    FROZEN: "(all (q x) (=> (and (has q x) (not (left q))) (of-owner q O)))",
}
steps |= {
    # A Deployment adopts the ReplicaSet, or orphans it.
    "owner": {"args": "S O", "needs": {}, "does": {"owner s": "(ite (= s S) O (owner s))"}},
    "relabel": {"args": "P", "needs": {}, "does": {"left p": "(or (left p) (= p P))"}},
}


def size(receipts):
    return {"Pod": 2, "Thing": 1, "Receipt": receipts, "ReplicaSet": 2, "Owner": 2, "View": 1}


stories = {
    "a split, and a merge": (size(6), [*begins_work(P), "owner S=s0", "owner S=s1", "foreign-id " + P, "Publish " + P, "stop " + P, "end " + P, *begins_work(Q), "relabel " + Q]),
    "a withdrawal": (size(6), [*T2, "Withdraw", "arrives"]),
}
left_out = {
    "the first list": ("T3", "the first list shows the locks under the pod's name", "true", size(6), [*begins_work(P), "relabel " + P, *begins_work(Q)]),
    "the second list": ("T3", "the second list shows the locks of the owner's pods, under any name", "true", size(6),
        [*begins_work(P), "owner", "owner", *begins_work(Q)]),
    "frozen": ("T3", FROZEN, "true", size(6), [*begins_work(P), "owner", "owner", *begins_work(Q)]),
    "frozen, as T3 reads the ReplicaSets and not as a controller knows them": ("T3", FROZEN, "(all (s) (= (sees V s) O))", size(6),
        [*T2, "T3 " + P, "owner", "owner", *begins_work(Q), "Begin", "arrives", "container " + P]),
    "Begin keeps the name": ("Begin", "it keeps the name", "true", size(6), [*begins_work(P), "relabel " + P, *begins_work(Q)]),
}
