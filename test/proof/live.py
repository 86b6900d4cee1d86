"""Liveness: if the map proposes a free thing to one pod and stays, some pod comes to work on it.

The ranking function is the number of other pods that may lock the thing, and then the number of rungs below that are not reached. While no pod works on
it, no step raises the rank, and some process can always lower it: with two writes for each other pod that may lock the thing, and T2, its arrival, T3 and
the begin of the work for the one that is to have it. This needs a calm time: no foreign write, the process stays, and none of its earlier writes arrives.
"""
import take

sorts, state, begins, never, steps, stories = take.sorts, take.state, take.begins, take.never, take.steps, take.stories
facts, left_out = take.facts, {}
fixed = take.fixed | {
    "me": ("", "Pod"),  # the pod to which the map proposes the thing
    "it": ("", "Thing"),
    "some-set": ("Pod", "Bool"),  # any set of pods
}
means = take.means | {
    "fits": ("b p", "(and (sent b) (= (of b) p) (= (tests b) (receipt p)))"),
    "may-lock": ("p", "(and (not (gone p)) (or (locks (receipt p) it) (some (b) (and (fits b p) (locks b it)))))"),
    "alone": ("", "(all (q) (=> (may-lock q) (= q me)))"),
    "sends-it": ("", "(some (b) (and (fits b me) (last me b) (locks b it) (not (gone me))))"),
    "has-it": ("", "(and (has me it) (last me (receipt me)))"),
}
keeps = take.keeps | {
    "what stands is unbroken": "(all (p x) (=> (has p x) (unbroken (receipt p) x)))",
    "one write is the last": "(all (p b c) (=> (and (last p b) (last p c)) (= b c)))",
}
WRITES = "(and (replaces B P) (= (tests B) (receipt P)) (all (x) (and (=> (works P x) (locks B x)) (not (notes B x)))))"
liveness = (
    "(some (q) (works q it))",
    # The steps of a calm time.
    {
        "T2": "(or (and (not (= P me)) (not (locks B it))) (and (= P me) (locks B it) (not (or (has-it) (sends-it))) (= (tests B) (receipt P))))",
        "Give": "(not (= P me))",
        "arrives": "(=> (= P me) (last me B))", "T3": "true", "work": "true", "stop": "true", "Restart": "(not (= P me))", "end": "(not (= P me))",
    },
    {
        "no more pods may lock it": "(all (q) (=> (may-lock q) (or (some-set q) (= q me))))",
        "T2 is under way or done": "(or (has-it) (sends-it))",
        "it is locked": "(has-it)",
        "T3 has shown it": "(and (has-it) (shown (receipt me) it))",
    },
    {
        "another pod that may lock it can give it": ("Give",
            f"(and {WRITES} (not (= P me)) (not (locks B it)) (all (x) (=> (locks B x) (locks (tests B) x))))", "(fits B P)"),
        "and does not lock it then": ("arrives", "(and (fits B P) (not (gone P)) (not (= P me)) (not (locks B it)) (= R B))", "(not (may-lock P))"),
        "T2 can be sent": ("T2", f"(and {WRITES} (= P me) (locks B it))", "(sends-it)"),
        "it arrives": ("arrives", "(and (fits B me) (last me B) (locks B it) (not (gone me)) (= R B) (= P me))", "(has-it)"),
        "T3 shows it": ("T3", "(and (has-it) (alone) (= P me) (= X it))", "(and (has-it) (shown (receipt me) it))"),
        "the work begins": ("work", "(and (has-it) (shown (receipt me) it) (= P me) (= X it) (= T (receipt me)))", "(works me it)"),
    },
)
