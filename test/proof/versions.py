"""Gated pods as they are written: each write tests the resourceVersion of the whole pod, and T3 compares the text of the receipt.

A Receipt is a version of the pod here, and several versions may have one text: other writers change a pod and leave its receipt. Begin leaves the text as
it is. So it need not write what was never there, but T2 and Withdraw must.
"""
import gated
from gated import P, Q, T2, begins_work, takes

sorts = gated.sorts | {"Text": "e"}
fixed = gated.fixed | {
    "text": ("Receipt", "Text"),
    "showed": ("Receipt", "Receipt"),  # of a write by Begin: the version that T3 showed
}
facts, state, means, begins, never = gated.facts, gated.state, gated.means, gated.begins, gated.never
keeps = gated.keeps | {
    "Begin was confirmed": """(all (b x) (=> (and (sent b) (begun b) (locks b x)) (and (shown (showed b) x) (= (of (showed b)) (of b))
        (= (text (showed b)) (text (tests b))) (locks (tests b) x))))""",
    "one text is one lock": "(all (b x) (=> (and (stood b) (gated (of b)) (= (text b) (text (receipt (of b)))) (has (of b) x)) (unbroken b x)))",
    "T2 writes a new text": """(all (b c) (=> (and (sent b) (gated (of b)) (not (begun b)) (not (stood b)) (= (of b) (of c))
        (or (stood c) (and (sent c) (not (= c b))))) (not (= (text b) (text c)))))""",
    "Begin leaves the text": "(all (b) (=> (and (sent b) (begun b)) (= (text b) (text (tests b)))))",
}
SAME = "(and (= (text %s) (text %s)) (all (x) (= (locks %s x) (locks %s x))))"
NEW_TEXT = {"its text was never there before": "(all (b) (=> (and (or (stood b) (sent b)) (= (of b) (of B))) (not (= (text b) (text B)))))"}
steps = {name: dict(step, needs=dict(step["needs"])) for name, step in gated.steps.items()}
steps["T2-by-controller"]["needs"] |= NEW_TEXT
steps["Withdraw"]["needs"] |= NEW_TEXT
steps["Begin"]["needs"] |= {
    "it leaves the text": SAME % ("B", "(tests B)", "B", "(tests B)"),
    "what T3 showed": "(and (= T (showed B)) (= (of T) (of B)))",
    "it tests the receipt that T3 showed": "(= (text T) (text (tests B)))",
}
NO_OLD = "A3: no receipt of a gated pod comes back, as T3 may be older than what Begin tests"
steps["foreign"]["needs"][NO_OLD] = "(not (gated P))"
# Another writer changes the pod, and leaves its receipt.
steps["foreign-field"] = {"args": "P R", "needs": {
    "a version": """(and (gated P) (is-of R P) (new R) (= (begun R) (begun (receipt P))) (all (x) (not (notes R x))))""",
    "A3: the same receipt": SAME % ("R", "(receipt P)", "R", "(receipt P)"),
}, "does": steps["foreign"]["does"]}

SIZE = {"Pod": 2, "Thing": 1, "Receipt": 8, "Text": 8}
stories = {
    "another writer": (SIZE, [*T2, "T3 " + P, "foreign-field " + P, "Begin", "arrives", "foreign-field " + P, "container " + P, "foreign-id " + P, "Publish " + P,
        "stop " + P, "end " + P, *takes(Q)]),
    "the other steps": (SIZE, [*T2, "Withdraw", "arrives", "foreign " + Q, "Restart " + Q, "Give " + Q]),
}
left_out = {
    "T2 and Withdraw write what was never there": ("T2-by-controller", "its text was never there before", "true", SIZE,
        [*T2, "T3 " + P, "Withdraw", "arrives", *begins_work(Q), *T2, "Begin", "arrives", "container " + P]),
    "Begin tests the receipt that T3 showed": ("Begin", "it tests the receipt that T3 showed", "true", SIZE,
        [*T2, "T3 " + P, "Withdraw", "arrives", *begins_work(Q), *T2, "Begin", "arrives", "container " + P]),
    "Begin tests the resourceVersion": ("arrives", "Begin tests the receipt that it replaces", "true", SIZE,
        [*T2, "T3 " + P, "Begin", "Withdraw", "arrives", *begins_work(Q), "arrives", "container " + P]),
    "T2 and Withdraw test the resourceVersion": ("arrives", "T2 tests the receipt that it replaces", "true", SIZE,
        ["Withdraw", "T2-by-controller", *begins_work(P)[1:], "arrives", *takes(Q)]),
    "A3: no receipt comes back": ("foreign", NO_OLD, "true", SIZE | {"Receipt": 9},
        [*T2, "T3 " + P, "foreign " + P, *begins_work(Q), "foreign " + P, "Begin", "arrives", "container " + P]),
    "A3: the receipt of a gated pod": ("foreign-field", "A3: the same receipt", "true", SIZE, [*begins_work(P), "foreign-field " + P, *takes(Q)]),
}
