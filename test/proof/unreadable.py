"""Receipts that cannot be read, because another writer damaged them.

Such a receipt locks the slot of its label and every partition: so peers and agents read it. For the controller an agent's locks what was confirmed last.
Otherwise one damaged receipt would stop all agents. Nothing is asked of the writer but that the labels stay. In return an agent that does not wait for the
controller, and lists for itself, is not covered: for it, the damage breaks A3.
"""
import take
from take import P, Q, takes

sorts, never = take.sorts, take.never
fixed = take.fixed | {
    "agent": ("Pod", "Bool"),
    "slot": ("Thing", "Bool"),
    "unreadable": ("Receipt", "Bool"),  # locks has how peers read it
}
facts = take.facts
state = take.state | {
    "listed": ("Receipt Thing", "Bool"),  # the controller's T3 showed this receipt, and no other lock. The agent has not heard of it yet
    "confirmed": ("Pod Thing", "Bool"),  # the share of the last confirmation: what the receipt locked then
}
means = {name: meaning for name, meaning in take.means.items() if name != "confirmed"} | {
    "held": ("p x", "(some (t) (and (= (of t) p) (unbroken t x) (shown t x)))"),
    "damaged": ("p", "(unreadable (receipt p))"),
    "has-for-controller": ("p x", "(and (not (gone p)) (ite (and (agent p) (damaged p)) (confirmed p x) (locks (receipt p) x)))"),
    "readable": ("b", "(not (unreadable b))"),
}
begins = [*take.begins, "(all (p b x) (and (not (damaged p)) (not (listed b x)) (not (confirmed p x))))"]
keeps = take.keeps | {
    "the first one locks": "(all (p x) (=> (first p x) (and (has p x) (has-for-controller p x))))",
    "the controller's T3 tells who is first": "(all (b x) (=> (listed b x) (and (stood b) (locks b x) (readable b) (=> (unbroken b x) (first (of b) x)))))",
    "a process writes what can be read": "(all (b) (=> (sent b) (readable b)))",
    "an unbroken lock stands": "(all (b x) (=> (unbroken b x) (and (stood b) (has (of b) x))))",
    "an agent works on what was confirmed": "(all (p x) (=> (and (agent p) (works p x)) (confirmed p x)))",
    "what it was told was confirmed": "(all (b x) (=> (and (agent (of b)) (unbroken b x) (shown b x)) (confirmed (of b) x)))",
    "what it has noted was confirmed": "(all (p x) (=> (and (agent p) (notes (receipt p) x) (not (gone p))) (confirmed p x)))",
    "what it notes was confirmed": """(all (b x) (=> (and (sent b) (agent (of b)) (= (tests b) (receipt (of b))) (not (gone (of b))) (notes b x))
        (confirmed (of b) x)))""",
}
steps = {name: dict(step, needs={n: need.replace("(confirmed P x)", "(held P x)") for n, need in step["needs"].items()}) for name, step in take.steps.items()}
for name in ("T2", "Give"):
    steps[name]["needs"]["it can be read"] = "(readable B)"
steps["foreign"]["needs"]["it can be read"] = "(readable R)"
steps["T3"]["needs"] |= {
    "as the pod wrote it": "(not (damaged P))",
    "an agent waits for the controller": "(not (agent P))",
}
steps |= {
    "damage": {"args": "P R", "needs": {
        "a receipt": "(and (is-of R P) (new R) (unreadable R) (all (x) (not (notes R x))))",
        "the slot of its label": "(all (x) (=> (slot x) (= (locks R x) (locks (receipt P) x))))",
        "every partition": "(all (x) (=> (not (slot x)) (locks R x)))",
    }, "does": take.STANDS | {
        "unbroken b x": "(and (unbroken b x) (not (= (of b) P)))",
        "first p x": "(and (first p x) (=> (= p P) (and (locks R x) (=> (agent P) (confirmed P x)))))",
    }},
    "T3-by-controller": {"args": "P X", "needs": {
        "it shows the pod's own receipt": "(and (has P X) (agent P) (not (damaged P)))",
        "it shows the locks of all live pods": "(all (q) (=> (has-for-controller q X) (= q P)))",
    }, "does": {"listed b x": "(or (listed b x) (and (= b (receipt P)) (= x X)))", "first p x": "(or (first p x) (and (= p P) (= x X)))"}},
    # The confirmation of T arrives on the pod.
    "Confirm": {"args": "P T", "needs": {
        "of its receipt": "(and (is-of T P) (some (x) (listed T x)))",
        "it tests the receipt that T3 showed": "(= T (receipt P))",
    }, "does": {
        "confirmed p x": "(ite (= p P) (locks T x) (confirmed p x))",
        "shown b x": "(or (shown b x) (and (= b T) (listed T x)))",
    }},
}


def size(receipts, things=1):
    return {"Pod": 2, "Thing": things, "Receipt": receipts}


def takes_by_controller(p):
    return [f"T2 {p}", "arrives", f"T3-by-controller {p}", f"Confirm {p}", f"work {p}"]


stories = {
    "an agent's receipt is damaged": (size(8), [*takes_by_controller(P), "damage " + P, "stop " + P, "Give " + P, "arrives", *takes_by_controller(Q)]),
    "a peer's": (size(6), [*takes(P), "damage " + P, "Restart " + P, "stop " + P, "end " + P, "foreign " + Q]),
}
left_out = {
    "an unreadable receipt locks the slot of its label": ("damage", "the slot of its label", "true", size(6), [*takes(P), "damage " + P, *takes(Q)]),
    "an unreadable receipt locks every partition": ("damage", "every partition", "true", size(6), [*takes(P), "damage " + P, *takes(Q)]),
    "for the controller an agent's locks what was confirmed": ("T3-by-controller", "it shows the locks of all live pods",
        "(all (q) (=> (and (has q X) (not (damaged q))) (= q P)))", size(6), [*takes_by_controller(P), "damage " + P, *takes_by_controller(Q)]),
    "an agent waits for the controller": ("T3", "an agent waits for the controller", "true", size(6),
        [*takes(P), "damage " + P, *takes_by_controller(Q)]),
    "Confirm tests the receipt that T3 showed": ("Confirm", "it tests the receipt that T3 showed", "true", size(8, 2),
        ["T2 " + P, "arrives", "T3-by-controller " + P, *takes_by_controller(P), "Confirm " + P, "damage " + P, *takes_by_controller(Q)]),
}
