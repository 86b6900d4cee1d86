"""Tokens: each later holder of a thing has a higher one.

The token is the resourceVersion of T2, or of a later write under the same lock that is not later than what T3 showed. Each program that works has one.
Here the order of the T2s matters. A receipt is named by the write that it is of, and by its resourceVersion.
"""
import gated
from gated import P, Q, T2, begins_work, gives, size, takes

bad = "tokens do not grow"
sorts = gated.sorts | {"Receipt": gated.sorts["Receipt"] + "k"}
fixed = gated.fixed | {
    "less": ("Receipt Receipt", "Bool"),  # the order of resourceVersions
    "token": ("Receipt", "Receipt"),  # of a write by Begin: the token that it notes
}
facts = [*gated.facts, "(all (a) (not (less a a)))", "(all (a b c) (=> (and (less a b) (less b c)) (less a c)))"]
state = gated.state | {
    "has-token": ("Pod Thing", "Receipt"),  # the token of the work
    "told": ("Receipt Thing", "Bool"),  # at some time a program had this token
}
means = gated.means
begins = [*gated.begins, "(all (b x) (not (told b x)))"]
never = "(some (q b x) (and (works q x) (told b x) (not (= (of b) q)) (not (less b (has-token q x)))))"
keeps = gated.keeps | {
    "who is first locked before the others": "(all (t c x) (=> (and (unbroken t x) (shown t x) (unbroken c x) (not (= (of c) (of t)))) (less t c)))",
    "all tokens are from before the other locks": "(all (b c x) (=> (and (told b x) (unbroken c x) (not (= (of c) (of b)))) (less b c)))",
    "a token is of this lock": """(all (q x) (=> (and (not (gone q)) (or (works q x) (and (begun (receipt q)) (has q x))))
        (and (= (of (has-token q x)) q) (unbroken (has-token q x) x) (told (has-token q x) x))))""",
    "the noted token": """(all (p x) (=> (and (begun (receipt p)) (has p x))
        (and (= (of (token (receipt p))) p) (unbroken (token (receipt p)) x) (told (token (receipt p)) x))))""",
    "Begin's token": "(all (b) (=> (and (sent b) (begun b)) (= (token b) (tests b))))",
    "a lock stands": "(all (b x) (=> (unbroken b x) (and (stood b) (has (of b) x))))",
    "a token stood": "(all (b x) (=> (told b x) (stood b)))",
}
steps = {name: dict(step, needs=dict(step["needs"]), does=dict(step["does"])) for name, step in gated.steps.items()}
for name in ("arrives", "foreign"):
    steps[name]["needs"]["resourceVersions grow"] = "(all (b) (=> (stood b) (less b R)))"
steps["foreign"]["needs"]["A3: the noted token stays"] = "(=> (begun R) (= (token R) (token (receipt P))))"
TOLD = {"has-token p x": "(ite (and (= p P) (= x X)) K (has-token p x))", "told b x": "(or (told b x) (and (= b K) (= x X)))"}
steps["work"]["args"] += " K"
steps["work"]["needs"] |= {
    "the token is of this lock": "(and (= (of K) P) (unbroken K X))",
    "it is not later than what T3 showed, or noted": "(or (told K X) (and (or (= K T) (less K T)) (shown T X)))",
}
steps["work"]["does"] |= TOLD
steps["Begin"]["needs"]["the token is what T3 showed"] = "(= (token B) T)"
steps["arrives"]["does"] |= {
    "has-token p x": "(ite (and (= p P) (begun B) (locks B x)) (token B) (has-token p x))",
    "told b x": "(or (told b x) (and (begun B) (locks B x) (= b (token B))))",
}
steps["Publish"]["args"] += " X K"
steps["Publish"]["needs"] |= {
    "its thing": "(locks (receipt P) X)", "the token is the noted one": "(= K (token (receipt P)))",
}
steps["Publish"]["does"] |= TOLD

stories = {
    "peers": (size(8), [*takes(P), "Restart " + P, "T2 " + P, "arrives", *gives(P), *takes(Q), "stop " + Q, "end " + Q, "foreign " + P]),
    "gated pods": (size(6), [*begins_work(P), "foreign-id " + P, "Publish " + P, "stop " + P, "end " + P, *begins_work(Q)]),
    "a withdrawal": (size(6), [*T2, "Withdraw", "arrives"]),
}
left_out = {
    "the token is of this lock": ("work", "the token is of this lock", "(and (= (of K) P) (stood K))", size(6), [*takes(P), *gives(P), *takes(Q)]),
    "a token is not later than what T3 showed": ("work", "it is not later than what T3 showed, or noted", "true", size(7),
        ["T2 " + P, "arrives", "T3 " + P, "T2 " + Q, "arrives", "T2 " + P, "arrives", "work " + P, *gives(P), "T3 " + Q, "work " + Q]),
    "resourceVersions grow": ("arrives", "resourceVersions grow", "true", size(6), [*takes(P), *gives(P), *takes(Q)]),
    "Begin's token is what T3 showed": ("Begin", "the token is what T3 showed", "(= (token B) B)", size(6),
        [*T2, "T3 " + P, "T2 " + Q, "arrives", "Begin", "arrives", "container " + P, "stop " + P, "end " + P, "T3 " + Q, "work " + Q]),
    "A3: the noted token": ("foreign", "A3: the noted token stays", "true", size(8),
        [*begins_work(P), *T2, "foreign " + P, "Publish " + P, "stop " + P, "end " + P, "T3 " + Q, "Begin", "arrives", "container " + Q]),
    "an identity that was lost has the noted token again": ("Publish", "the token is the noted one", "(and (= (of K) P) (unbroken K X))", size(6),
        [*T2, "T3 " + P, *T2, "Begin", "arrives", "container " + P, "Publish " + P, "stop " + P, "end " + P, "T3 " + Q, "Begin", "arrives", "container " + Q]),
}
