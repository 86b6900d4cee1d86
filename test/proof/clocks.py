"""Strict mode with clocks in place of what strict.py knows: a pod takes a Lease for expired by its own clock alone.

Clocks need not agree, and their rates differ by at most 5 percent. An observer takes a version for expired when it has not changed for
1.05 (F + G) + 1 s since the observer first saw it. The holder's work ends within F + G of the sending of the last accepted renewal.
"""
import strict
from strict import ONE, P, Q, TWO, secures

sorts = strict.sorts | {"Real": "d"}
fixed = strict.fixed | {"lasts": ("", "Real")}  # F + G
facts = [*strict.facts, "(> lasts 0.0)"]
state = strict.state | {
    "clock": ("Pod", "Real"),  # each pod's own
    "sent-at": ("Version", "Real"),  # by the clock of its holder
    "seen": ("Pod Version", "Bool"),
    "seen-at": ("Pod Version", "Real"),  # by the clock of the observer
    "answered-at": ("Pod", "Real"),  # no step looks at it
}
means = strict.means | {
    "waited": ("p v d", "(and (seen p v) (>= (- (clock p) (seen-at p v)) d))"),
    "expired": ("p v", "(waited p v (+ (* 1.05 lasts) 1.0))"),
    "work-ends": ("p", "(+ (sent-at (under p)) lasts)"),
}
begins = [*strict.begins, "(all (p v) (not (seen p v)))"]
never = strict.never
keeps = strict.keeps | {
    "no clock is ahead": """(all (p v) (=> (and (seen p v) (sent v)) (<= (- (clock p) (seen-at p v)) (* 1.05 (- (clock (by v)) (sent-at v))))))""",
    "over is F + G": "(all (v) (=> (and (sent v) (>= (- (clock (by v)) (sent-at v)) lasts)) (over v)))",
    "what has expired is over": "(all (p v) (=> (and (sent v) (expired p v)) (over v)))",
    "the order of writes": "(all (a v) (=> (and (sent a) (sent v) (= (by a) (by v)) (before a v)) (<= (sent-at a) (sent-at v))))",
    "nothing is sent later": "(all (v) (=> (sent v) (<= (sent-at v) (clock (by v)))))",
    "who works has renewed": "(all (p x) (=> (works p x) (sent (under p))))",
    "what was seen stood": "(all (p v) (=> (seen p v) (stood v)))",
}
steps = {name: dict(step, needs=dict(step["needs"]), does=dict(step["does"])) for name, step in strict.steps.items()}
FREE = "(or (= (by (tests V)) P) %s (all (x) (not (locks (tests V) x))))"
steps["Secure"]["needs"]["it is free, its own, or expired"] = FREE % "(expired P (tests V))"
steps["Secure"]["does"]["sent-at v"] = "(ite (= v V) (clock P) (sent-at v))"
steps["answer"]["does"]["answered-at p"] = "(ite (= p P) (clock P) (answered-at p))"
steps["T3"]["args"] += " P"  # by whose clock the others have expired: any pod's
steps["T3"]["needs"] |= {
    "it shows all Leases that have not expired": "(all (s) (=> (locks (lease s) X) (or (= s S) (expired P (lease s)))))",
}
# A pod reads a Lease, and notes when, if it has not seen that version before.
steps["see"] = {"args": "P S", "needs": {}, "does": {
    "seen p v": "(or (seen p v) (and (= p P) (= v (lease S))))",
    "seen-at p v": "(ite (and (= p P) (= v (lease S)) (not (seen p v))) (clock P) (seen-at p v))",
}}
# D says by how much each clock goes on.
TIME = "(all (p x) (=> (works p x) (< (+ (clock p) (D p)) %s)))"
steps["time"] = {"args": "D", "functions": {"D": "(Pod) Real"}, "needs": {
    "clocks go on": "(all (p) (>= (D p) 0.0))",
    "the rates of clocks differ by at most 5 percent": "(all (p q) (<= (D p) (* 1.05 (D q))))",
    "the work ends in time, counted from the sending": TIME % "(work-ends p)",
}, "does": {
    "clock p": "(+ (clock p) (D p))",
    "over v": "(or (over v) (and (sent v) (>= (- (+ (clock (by v)) (D (by v))) (sent-at v)) lasts)))",
}}


def takes(p):
    return [*secures(p), "T3 " + p, "work " + p]


waits = ["see " + Q, "time"]
stories = {
    "a lost node": (ONE, [*takes(P), *secures(P), "Restart " + P, "see " + Q, "stop " + P, "time", *takes(Q)]),
}
left_out = {
    "the rates of clocks differ by at most 5 percent": ("time", "the rates of clocks differ by at most 5 percent", "true", ONE, [*takes(P), *waits, *takes(Q)]),
    "an observer waits longer than F + G": ("Secure", "it is free, its own, or expired", FREE % "(waited P (tests V) lasts)", ONE, [*takes(P), *waits, *takes(Q)]),
    "T3 waits longer than F + G": ("T3", "it shows all Leases that have not expired", "(all (s) (=> (locks (lease s) X) (or (= s S) (waited P (lease s) lasts))))", TWO,
        [*takes(P), *waits, *takes(Q)]),
    "the work ends": ("time", "the work ends in time, counted from the sending", "true", ONE, [*takes(P), *waits, *takes(Q)]),
    "the time is counted from the sending": ("time", "the work ends in time, counted from the sending", TIME % "(+ (answered-at p) lasts)", ONE,
        ["Secure " + P, "arrives", *waits, "answer " + P, "T3 " + P, "work " + P, "time", *takes(Q)]),
    "no work begins after its time": ("work", "its time is not over", "true", ONE, [*secures(P), "T3 " + P, *waits, "work " + P, *takes(Q)]),
}
