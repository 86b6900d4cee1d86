#!/usr/bin/env python3
"""Proves the protocol with Z3, for any number of pods: make proof, or prove.py CHAPTER...

A chapter is a file beside this one. It states a part of docs/protocol.md as relations, and steps that change them. For each chapter this program

1. asks Z3 whether each step keeps an invariant that forbids what must never be (induction),
2. finds histories from the beginning in which every step happens, so that none is impossible,
3. leaves out each condition of a step, and finds a history from the beginning that ends with what must never be. It prints that history.

It fails if a step breaks the invariant, if a step never happens, if a condition that is left out goes unnoticed, or if Z3 needs more than a minute.

A formula is SMT-LIB with two shorthands: (all (p q x) ...) and (some (p) ...). A variable's first letter says its sort. So do a step's arguments, which
are capital letters, and the parameters of what it does.
"""
import concurrent.futures
import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import time

LIMIT = 60  # seconds for one question to Z3


def parse(text):
    stack = [[]]
    for token in re.findall(r"[()]|[^\s()]+", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            inner = stack.pop()
            stack[-1].append(inner)
        else:
            stack[-1].append(token)
    [[formula]] = stack
    return formula


def show(e):
    return e if isinstance(e, str) else f"({' '.join(map(show, e))})"


def rename(e, names):
    return names.get(e, e) if isinstance(e, str) else [rename(x, names) for x in e]


def ask(text, want=""):
    """Returns Z3's answer, and the values of what is wanted if there are any."""
    done = subprocess.run(["z3", "-in", f"-T:{LIMIT}"], input=text + "(check-sat)" + want, capture_output=True, text=True, check=False)
    answer, _, values = done.stdout.partition("\n")
    return answer or "no answer", values


class Chapter:
    """A chapter as its file has it. See take.py for what the names say."""

    def __init__(self, module):
        self.name, self.says = module.__name__, module.__doc__.strip()
        for part in ("sorts", "fixed", "state", "means", "facts", "begins", "never", "keeps", "steps", "stories", "left_out"):
            setattr(self, part, getattr(module, part))
        self.bad = getattr(module, "bad", "two at work")
        self.goal, self.calm, self.rungs, self.climb = getattr(module, "liveness", ("true", {}, {}, {}))
        self.sort = {letter: sort for sort, letters in self.sorts.items() for letter in letters}

    # Text and formulas.

    def sort_of(self, name):
        return self.sort[name[0].lower()]

    def read(self, text):
        return self.expand(parse(text))

    def expand(self, e):
        if isinstance(e, str):
            return e
        if e[0] in ("all", "some"):
            return ["forall" if e[0] == "all" else "exists", [[v, self.sort_of(v)] for v in e[1]], self.expand(e[2])]
        if isinstance(e[0], str) and e[0] in self.means:
            names, text = self.means[e[0]]
            return self.expand(rename(parse(text), dict(zip(names.split(), e[1:]))))
        return [self.expand(x) for x in e]

    def declared(self, functions, suffix=""):
        return "".join(f"(declare-fun {f}{suffix} ({args}) {result})" for f, (args, result) in functions.items())

    def arguments(self, step, suffix=""):
        return "".join(f"(declare-fun {a}{suffix} {step.get('functions', {}).get(a) or f'() {self.sort_of(a)}'})" for a in step["args"].split())

    def changes(self, step):
        """What a step does: for each function its parameters and its new value."""
        for what, value in step["does"].items():
            function, *parameters = what.split()
            yield function, parameters, self.read(value)

    # Induction.

    def holds(self, assumed, goal, more=""):
        text = "".join(f"(declare-sort {s})" for s in self.sorts if s != "Real") + self.declared(self.fixed) + self.declared(self.state) + more
        text += "".join(f"(assert {show(self.read(f))})" for f in assumed)
        return ask(text + f"(assert (not {show(goal)}))")[0], []

    def assumed(self, step=None):
        return [*self.facts, *self.keeps.values(), *(step["needs"].values() if step else [])]

    def at_the_beginning(self, line):
        return self.holds([*self.facts, *self.begins], self.read(self.keeps[line]))

    def forbids(self):
        return self.holds(self.assumed(), ["not", self.read(self.never)])

    def after(self, name):
        """Declares the arguments of a step, and each function as it is after the step, under a name of its own."""
        step, new, text = self.steps[name], {}, self.arguments(self.steps[name])
        for function, parameters, value in self.changes(step):
            new[function] = f"|{function}'|"
            text += f"(define-fun {new[function]} ({' '.join(f'({v} {self.sort_of(v)})' for v in parameters)}) {self.state[function][1]} {show(value)})"
        return text, new

    def kept(self, name, line, more=()):
        text, new = self.after(name)
        return self.holds([*self.assumed(self.steps[name]), *more], rename(self.read(line), new), text)

    # Liveness.

    def raises(self, name):
        """Whether the step, which may do all that it can now, may lose a rung."""
        lines = list(self.rungs.values())
        answers = [self.kept(name, f"(or {self.goal} {line})", [f"(not {self.goal})", *lines[: i + 1]])[0] for i, line in enumerate(lines)]
        return next((a for a in answers if a != "unsat"), "unsat"), []

    def climbs(self, name, situation, result):
        """In such a situation the step can be taken, and has this result."""
        text, new = self.after(name)
        can = [self.read(need) for need in self.steps[name]["needs"].values()]
        return self.holds([*self.assumed(), f"(not {self.goal})", situation], ["and", *can, rename(self.read(result), new)], text)

    # Histories.

    def history(self, steps, size, end="true", changed=(None, None, None)):
        """Looks for a history of these steps with so many of each sort. It returns Z3's answer and the steps in words."""
        world = {s: [f"{letters[0]}{i}" for i in range(size[s])] for s, letters in self.sorts.items() if s != "Real"}
        text = "".join(f"(declare-datatypes () (({s} {' '.join(of)})))" for s, of in world.items()) + self.declared(self.fixed)
        text += "".join(self.declared(self.state, f"_{i}") for i in range(len(steps) + 1))
        at = [{f: f"{f}_{i}" for f in self.state} for i in range(len(steps) + 1)]

        def say(formula, names):
            return f"(assert {show(self.ground(self.read(formula), world, names))})"

        text += "".join(say(f, at[0]) for f in [*self.facts, *self.begins])
        for i, (name, *given) in enumerate(map(str.split, steps)):
            step = self.steps[name]
            text += self.arguments(step, f"_{i}") + "".join(f"(assert (= {a[0]}_{i} {a[2:]}))" for a in given)
            names = at[i] | {a: f"{a}_{i}" for a in step["args"].split()}
            for need, formula in step["needs"].items():
                text += say(changed[2] if (name, need) == changed[:2] else formula, names)
            done = {f: (parameters, value) for f, parameters, value in self.changes(step)}
            for f, (args, _) in self.state.items():
                for of in itertools.product(*(world[s] for s in args.split())):
                    parameters, value = done.get(f, ((), [f, *of]))
                    value = self.ground(value, world, names | dict(zip(parameters, of)))
                    text += f"(assert (= ({f}_{i + 1} {' '.join(of)}) {show(value)}))"
        text += say(end, at[-1])
        answer, values = ask(text, self.wanted(steps, world))
        return answer, self.words(steps, world, values) if answer == "sat" else []

    def ground(self, e, world, names):
        """Writes quantifiers out, for the few of each sort."""
        if isinstance(e, str):
            return names.get(e, e)
        if e[0] not in ("forall", "exists"):
            return [self.ground(x, world, names) for x in e]
        several = itertools.product(*(world[s] for _, s in e[1]))
        every = [self.ground(e[2], world, names | {v: c for (v, _), c in zip(e[1], some)}) for some in several]
        return ["and" if e[0] == "forall" else "or", "true" if e[0] == "forall" else "false", *every]

    def terms(self, steps, world):
        """What a history is told by: the steps' arguments, and what never changes."""
        for i, step in enumerate(steps):
            step = self.steps[step.split()[0]]
            for a in step["args"].split():
                yield from (show([f"{a}_{i}", *of]) for of in self.values_of(step, a, world)) if a in step.get("functions", {}) else [f"{a}_{i}"]
        for f, (args, _) in self.described():
            yield from (show([f, *of]) for of in itertools.product(*(world[s] for s in args.split())))

    @staticmethod
    def values_of(step, argument, world):
        """What a step's argument that is a function applies to."""
        sort, *_ = parse(f"({step['functions'][argument]})")[0]
        return [(c,) for c in world[sort]]

    def wanted(self, steps, world):
        return f"(get-value ({' '.join(self.terms(steps, world))}))"

    def words(self, steps, world, values):
        value = {show(term): show(is_) for term, is_ in parse(values)}
        told, out = set(), []

        def what(c):
            """What is fixed about c, when it is named for the first time."""
            if c in told:
                return c
            told.add(c)
            facts = []
            for f, (args, result) in self.described():
                if args.split()[0] != next((s for s in world if c in world[s]), None):
                    continue
                for of in itertools.product(*(world[s] for s in args.split()[1:])):
                    v = value[show([f, c, *of])]
                    if v != "false":
                        facts.append(" ".join([f, *of] if result == "Bool" else [f, *of, v]))
            return f"{c} ({', '.join(facts)})" if facts else c

        def said(step, a, i):
            if a not in step.get("functions", {}):
                return f"{a}={what(value[f'{a}_{i}'])}"
            of = [(c, value[show([f"{a}_{i}", c])]) for (c,) in self.values_of(step, a, world)]
            return f"{a}=({', '.join(c if v == 'true' else f'{c} {v}' for c, v in of if v != 'false')})"

        for i, step in enumerate(steps):
            name = step.split()[0]
            out.append(f"{i + 1:6}. {name} {' '.join(said(self.steps[name], a, i) for a in self.steps[name]['args'].split())}")
        return out

    def described(self):
        """The functions that say what a write is. Orders are left out."""
        return [(f, signature) for f, signature in self.fixed.items() if signature[0] and f not in ("less", "before")]

    def questions(self):
        """Yields what is asked: kind, words, the right answer, and a function that returns Z3's answer with the history in words."""
        for line in self.keeps:
            yield "invariant", f"at the beginning: {line}", "unsat", lambda line=line: self.at_the_beginning(line)
        yield "invariant", f"it forbids: {self.bad}", "unsat", self.forbids
        for name, line in itertools.product(self.steps, self.keeps):
            yield "invariant", f"{name} keeps: {line}", "unsat", lambda name=name, line=line: self.kept(name, self.keeps[line])
        for (name, calm), (i, (rung, line)) in itertools.product(self.calm.items(), enumerate(self.rungs.items())):
            more = [f"(not {self.goal})", calm, *list(self.rungs.values())[: i + 1]]
            yield "liveness", f"{name} keeps: {rung}", "unsat", lambda c=(name, f"(or {self.goal} {line})", more): self.kept(*c)
        for name in (n for n, calm in self.calm.items() if calm != "true"):
            yield "liveness", f"without its calm {name} raises the rank", "sat", lambda name=name: self.raises(name)
        for what, climb in self.climb.items():
            yield "liveness", what, "unsat", lambda climb=climb: self.climbs(*climb)
        for what, (size, steps) in self.stories.items():
            yield "story", what, "sat", lambda size=size, steps=steps: self.history(steps, size)
        for what, (step, need, instead, size, steps) in self.left_out.items():
            what = f"{what!r} ({step}: {need})"
            assert need in self.steps[step]["needs"], need  # with it there is no such history: that is what the invariant says
            changed = (step, need, instead)
            yield "left out", what, "sat", lambda size=size, steps=steps, changed=changed: self.history(steps, size, self.never, changed)

    def unused(self):
        return set(self.steps) - {s.split()[0] for _, steps in self.stories.values() for s in steps}


def main(names):
    if not shutil.which("z3"):
        sys.exit("prove.py: there is no program z3: install it, for example by apt-get install z3")
    began, failed = time.monotonic(), False
    here = os.path.dirname(os.path.abspath(__file__))
    names = names or sorted(f[:-3] for f in os.listdir(here) if f.endswith(".py") and f != "prove.py")
    chapters = [Chapter(importlib.import_module(n)) for n in names]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        asked = [(c, [(kind, what, right, pool.submit(timed, question)) for kind, what, right, question in c.questions()]) for c in chapters]
        for c, questions in asked:
            wrong, noticed, seconds = [f"no story has the step {s}" for s in sorted(c.unused())], 0, 0
            print(f"== {c.name}: {c.says.splitlines()[0]}")
            for kind, what, right, answered in questions:
                (answer, lines), took = answered.result()
                seconds += took
                if answer != right:
                    wrong.append(f"{kind}: {what}: {answer}")
                elif kind == "story":
                    print(f"{what}: it happens", *lines, sep="\n")
                elif kind == "left out":
                    noticed += 1
                    print(f"without {what}: {c.bad} after {len(lines)} steps", *lines, sep="\n")
            for line in wrong:
                print("WRONG:", line)
            print(f"{'NOT PROVED' if wrong else 'proved'}: {c.name}, {len(c.steps)} steps, {noticed} of {len(c.left_out)} left-out conditions noticed,"
                  f" {seconds:.0f} s", flush=True)
            failed = failed or bool(wrong)
    print(f"{'failed' if failed else 'all proved'} in {time.monotonic() - began:.0f} s")
    return failed


def timed(question):
    began = time.monotonic()
    return question(), time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
