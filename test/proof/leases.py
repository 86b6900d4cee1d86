"""Strict mode: Leases are created and deleted.

A Version may say that there is no Lease: a deletion leaves such a one. An update and a deletion test the UID and the resourceVersion, but a creation only
tests that there is no Lease. So a creation that arrives late, or twice, makes a Lease that no pod works under.
"""
import strict
from strict import P, Q, takes

sorts = strict.sorts
fixed = strict.fixed | {"absent": ("Version", "Bool")}
facts = [*strict.facts, "(all (v x) (=> (absent v) (not (locks v x))))"]
state = strict.state | {"accepted": ("Version", "Bool")}  # an answer says so, or will
means = strict.means | {"there": ("v", "(or (sent v) (stood v))"), "creates": ("v", "(and (absent (tests v)) (not (absent v)))")}
begins = [*strict.begins, "(all (v) (not (accepted v)))"]
never = strict.never
keeps = {name: line for name, line in strict.keeps.items() if name not in ("the last renewal stood", "who locks has sent")} | {
    "the last renewal": "(all (p x) (=> (works p x) (and (sent (under p)) (accepted (under p)) (or (= (under p) (now p)) (before (under p) (now p))))))",
    "an answer is of what was accepted": "(all (p) (ite (sent (under p)) (accepted (under p)) (stood (under p))))",
    "a creation leaves another version": "(all (v) (=> (and (sent v) (creates v)) (not (stood v))))",
    "what was accepted was sent": "(all (v) (=> (accepted v) (and (sent v) (or (= v (lease (at v))) (before v (lease (at v)))))))",
    "what is over was there": "(all (v x) (and (=> (over v) (there v)) (=> (shown v x) (stood v))))",
    "what was sent before is over": "(all (a v) (=> (and (over a) (there v) (= (by v) (by a)) (before v a)) (over v)))",
}
steps = {name: dict(step, needs=dict(step["needs"]), does=dict(step["does"])) for name, step in strict.steps.items()}
secure = steps["Secure"]
steps["Create"] = dict(secure, needs=secure["needs"] | {"there is no Lease": "(creates V)"})
steps["Delete"] = dict(secure, needs=secure["needs"] | {"it deletes": "(and (absent V) (not (absent (tests V))))"})
steps["Secure"] = dict(secure, needs=secure["needs"] | {"it updates": "(not (or (absent V) (absent (tests V))))"})
arrives = steps["arrives"]
arrives["args"] = "V R"
arrives["needs"] = {
    "a write": "(and (sent V) (= (at R) (at V)) (= (by R) (by V)) (= (absent R) (absent V)) (all (x) (= (locks R x) (locks V x))))",
    # Without the UID it could make a deleted Lease again. That does no harm.
    "an update tests the resourceVersion": "(=> (not (or (creates V) (absent V))) (or (absent (lease (at V))) (= (lease (at V)) (tests V))))",
    "a deletion tests the resourceVersion": "(=> (absent V) (= (lease (at V)) (tests V)))",
    "a creation tests that there is no Lease": "(=> (creates V) (absent (lease (at V))))",
    "a new version": """(ite (and (not (absent V)) (absent (lease (at V)))) (and (not (sent R)) (not (stood R)) (all (v) (=> (or (sent v) (stood v)) (before v R)))
        (= (tests R) (lease (at V)))) (= R V))""",
}
arrives["does"] = {what: value.replace("V", "R") for what, value in arrives["does"].items()} | {"accepted v": "(or (accepted v) (= v V))"}
steps["answer"]["needs"]["it was accepted"] = "(accepted V)"
# What its holder sent before is over, too.
steps["time"]["needs"]["sent"] = "(there V)"
steps["time"]["does"]["over v"] = "(or (over v) (= v V) (and (there v) (= (by v) (by V)) (before v V)))"


def size(slots, versions):
    return {"Pod": 2, "Thing": 1, "Slot": slots, "Version": versions}


def creates(p):
    return [f"Create {p}", "arrives", f"answer {p}", "T3", f"work {p}"]


stories = {
    "created, deleted, and made again late": (size(1, 8), [*creates(P), "stop " + P, "Delete " + P, "arrives", "arrives V=v0", "time", *takes(Q)]),
    "a Restart": (size(1, 5), ["Restart " + P]),
}
left_out = {
    "a deletion tests the resourceVersion": ("arrives", "a deletion tests the resourceVersion", "true", size(1, 8),
        ["Delete " + Q, *takes(P), "arrives", *creates(Q)]),
    "an update tests the resourceVersion": ("arrives", "an update tests the resourceVersion", "true", size(1, 8),
        ["Secure " + Q, *takes(P), "arrives", "answer " + Q, "T3", "work " + Q]),
    "a creation tests that there is no Lease": ("arrives", "a creation tests that there is no Lease", "true", size(1, 8),
        ["Create " + Q, *creates(P), "arrives", "answer " + Q, "T3", "work " + Q]),
    "only what could be taken is deleted": ("Delete", "it is free, its own, or expired", "true", size(1, 8), [*takes(P), "Delete " + Q, "arrives", *creates(Q)]),
    "a pod deletes its Lease after its work": ("Delete", "its work stays locked", "true", size(1, 8), [*takes(P), "Delete " + P, "arrives", *creates(Q)]),
    "the last write has its answer": ("work", "its last write has its answer", "true", size(1, 8),
        ["Create " + P, "arrives", "answer " + P, "T3", "Delete " + P, "work " + P, "arrives", *creates(Q)]),
    "only an accepted write counts": ("answer", "it was accepted", "true", size(1, 8), [*creates(P), "Secure " + P, "answer " + P, "time", *takes(Q)]),
}
