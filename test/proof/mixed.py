"""Strict pods beside others, of one owner: no pod works on what a pod works on that is not strict, or the other way round.

Two strict pods are the matter of strict.py. What it asks of a strict pod comes on top of what is asked here.
"""
import take
from take import P, Q, size, takes

sorts, means = take.sorts, take.means
fixed = take.fixed | {"strict": ("Pod", "Bool")}
facts = [*take.facts, "(all (b x) (=> (strict (of b)) (not (notes b x))))"]
state = take.state | {"overdue": ("Pod", "Bool")}  # it has outlived its grace period
begins = take.begins
never = "(some (p q x) (and (works p x) (works q x) (not (= p q)) (not (and (strict p) (strict q)))))"
keeps = take.keeps | {"one is first": "(all (p q x) (=> (and (first p x) (first q x)) (or (= p q) (and (strict p) (strict q)))))"}
steps = dict(take.steps)
SHOWS = "(all (q) (=> (and (has q X) (not %s)) (= q P)))"
SHOWN = "it shows the locks of all live pods, but of two strict pods not that of an overdue one"
steps["T3"] = dict(take.steps["T3"], needs={
    "it shows the pod's own receipt": "(has P X)", SHOWN: SHOWS % "(and (strict P) (strict q) (overdue q))",
})
steps["overdue"] = {"args": "P", "needs": {}, "does": {"overdue p": "(or (overdue p) (= p P))"}}

stories = {
    "a strict pod is overdue, and a strict one takes": (size(8), [*takes(P), "overdue " + P, *takes(Q), "stop " + Q, "Restart " + Q, "foreign " + Q, "stop " + P,
        "Give " + P, "end " + Q]),
}
left_out = {
    "pods that are not strict count all receipts": ("T3", SHOWN, SHOWS % "(and (strict q) (overdue q))", size(6), [*takes(P), "overdue " + P, *takes(Q)]),
    "the receipt of an overdue pod counts that is not strict": ("T3", SHOWN, SHOWS % "(and (strict P) (overdue q))", size(6),
        [*takes(P), "overdue " + P, *takes(Q)]),
    "A2, for strict pods beside others": ("end", "A2: after its work", "(all (x) (=> (works P x) (strict P)))", size(6), [*takes(P), "end " + P, *takes(Q)]),
}
