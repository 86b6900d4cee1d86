package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

func damagedOwner(f *facts) (found []about) {
	for _, p := range f.owner.Record.Problems {
		found = append(found, about{with: words{"what": p.Error()}})
	}
	return found
}

// ignored finds invalid values of the user's annotations.
func ignored(f *facts) (found []about) {
	for _, p := range slices.Concat(f.owner.Wish.Problems, assignment.UserProblems(f.owner.Annotations, f.owner.Count)) {
		found = append(found, about{with: words{"what": p.Error()}})
	}
	return found
}

func copied(f *facts) []about { return some(f.copied != "", about{pod: f.copied}) }

func wiped(f *facts) []about { return some(f.wiped(), about{}) }

// damaged finds unreadable receipts or, with unreadable false, readable ones that their labels hide.
func damaged(unreadable bool) func(*facts) []about {
	return func(f *facts) []about {
		found := f.each(func(p pod) (words, bool) {
			locks := "every partition"
			switch id := p.Receipt.Slot(); {
			case p.byAgent:
				locks = "what idalloc-controller confirmed last"
			case id >= 0:
				locks = fmt.Sprintf("id %d and every partition", id)
			}
			return words{"what": p.damage, "locks": locks}, p.damage != "" && p.live() && (p.Receipt.State == receipt.Unreadable) == unreadable
		})
		return f.withIDs(found)
	}
}

// withIDs adds the slots that the pods' receipts lock.
func (f *facts) withIDs(found []about) []about {
	for k := range found {
		if id := f.pods[found[k].pod].Receipt.Slot(); id >= 0 {
			found[k].id = &id
		}
	}
	return found
}

func foreign(f *facts) []about {
	return f.withIDs(f.each(func(p pod) (words, bool) {
		why := "its controller is " + p.controller
		if !p.Owned {
			why = "its labels are not those that the workload selects"
		}
		return words{"why": why}, p.live() && !f.left(p) && f.stranger(p) && p.Receipt.Slot() >= 0
	}))
}

// otherOwners finds pods with a receipt for another owner. newPod excludes agents to which this owner proposes the same.
func otherOwners(f *facts) []about {
	return f.each(func(p pod) (words, bool) {
		does := map[receipt.State]string{receipt.Locks: "works under id " + number(p.elsewhere.Share.ID), receipt.Waits: "waits for an id"}[p.elsewhere.State]
		return words{theOther: p.elsewhere.Owner, "does": does}, p.live() && !f.left(p) && f.strays(p) && does != ""
	})
}

func stranded(f *facts) []about {
	return f.each(func(p pod) (words, bool) {
		since := f.now.Sub(p.written)
		gaveUp := p.live() && f.strays(p) && p.elsewhere.State == receipt.GaveUp && !p.Terminating
		return words{theOther: p.elsewhere.Owner, theTime: short(since)}, gaveUp && !p.written.IsZero() && since >= startsWithin
	})
}

// ungated finds pods that asked the controller for an id and run without one.
func ungated(f *facts) []about {
	return f.each(func(p pod) (words, bool) {
		return nil, p.byController && p.live() && !p.Terminating && !p.gated && p.given == ""
	})
}

// untold finds agents to which the controller has not proposed anything for a long time.
func untold(f *facts) []about {
	var newest time.Time
	pods := f.those(func(p pod) bool {
		is := p.byAgent && p.told == nil && f.refused[p.Name] == "" && p.live() && !p.Terminating && f.now.Sub(p.Created) >= startsWithin
		if is && p.Created.After(newest) {
			newest = p.Created
		}
		return is
	})
	if len(pods) == 0 {
		return nil
	}
	return []about{{pod: pods[0], with: words{"pods": few(pods), theTime: short(f.now.Sub(newest))}}}
}

// refusedWrites finds pods that cannot be written, and the map if it cannot be written.
func refusedWrites(f *facts) []about {
	found := f.each(func(p pod) (words, bool) {
		return words{"what": "pod " + p.Name, "why": strings.TrimSuffix(f.refused[p.Name], "."), "else": ", or run " + f.deletion(p.Name)}, f.refused[p.Name] != ""
	})
	if why := strings.TrimSuffix(f.mapRefused, "."); why != "" {
		found = append(found, about{with: words{"what": f.owner.String(), "why": why, "else": ": until then no pod gets a new id"}})
	}
	return found
}

// misled finds agents with a proposal of another owner.
func misled(f *facts) []about {
	return f.each(func(p pod) (words, bool) {
		if p.told == nil || !p.live() || f.stranger(p) {
			return nil, false
		}
		return words{theOther: p.told.Owner.String()}, p.told.Owner.String() != f.owner.String()
	})
}

// graceless finds pods with an id that even an ordinary deletion deletes by force.
func graceless(f *facts) []about {
	pods := f.those(func(p pod) bool { return p.live() && p.graceless && p.Receipt.Slot() >= 0 && !p.Receipt.Strict })
	return some(len(pods) > 0, about{with: words{"pods": few(pods)}})
}

// tokenLife is the default lifetime of a pod's token. The kubelet renews it before that.
const tokenLife = time.Hour

// refusedAccounts finds pods whose tokens are invalid because their service account was deleted and made again. The pods cannot report that themselves.
func refusedAccounts(f *facts) (found []about) {
	refused := map[string][]string{}
	for _, name := range f.names {
		p := f.pods[name]
		if made := f.accounts[p.account]; !made.IsZero() && p.live() && !p.Terminating && p.sign() && p.Created.Before(made) && f.now.Before(made.Add(tokenLife)) {
			refused[p.account] = append(refused[p.account], name)
		}
	}
	for account, pods := range refused {
		made := f.accounts[account].UTC().Format(time.RFC3339)
		found = append(found, about{with: words{"account": account, "pods": strings.Join(pods, ", "), theTime: made}})
	}
	return found
}

// barred finds pods that wait although no pod with an id ends. With displaced, one of the holders no longer has a place in the workload. Rolling updates of
// Deployments, in which pods normally wait, have a check of their own.
func barred(displaced bool) func(*facts) []about {
	return func(f *facts) (found []about) {
		if f.owner.Rolls() || len(f.lasting) == 0 || (len(f.condemned) > 0) != displaced {
			return nil
		}
		for _, p := range f.waiters {
			_, asks := f.state.Handover.Of(p.Name)
			since := f.now.Sub(p.written)
			if !p.sign() || !f.claims(p) || p.gaveUp() || asks || p.written.IsZero() || since < startsWithin {
				continue
			}
			a := about{pod: p.Name, with: words{theTime: short(since), "pods": few(f.lasting)}}
			if displaced {
				a.with[theOther], a.with["drop"] = f.condemned[0], f.deletion(f.condemned[0])
			}
			found = append(found, a)
		}
		return found
	}
}

// condemnedHolders finds pods that Kubernetes should remove from a StatefulSet but cannot, because they keep ids that others wait for. With the policy
// OrderedReady it removes the pod with the highest ordinal first, when all other pods are Ready.
func condemnedHolders(f *facts) []about {
	waits := len(f.lockers) >= f.owner.Count && slices.ContainsFunc(f.waiters, func(p pod) bool { return !p.Condemned && p.sign() && !p.ready })
	return f.condemnedPods(1, func(p pod) bool {
		return waits && p.Receipt.Locked() && p.Receipt.Slot() < f.owner.Count && !p.Receipt.HandsOver
	})
}

// condemnedIdlers finds condemned pods without ids.
func condemnedIdlers(f *facts) []about {
	if f.settled() < settlesWithin {
		return nil
	}
	return f.condemnedPods(2, func(p pod) bool { return !p.Receipt.Locked() && p.sign() && !p.ready })
}

func (f *facts) condemnedPods(atLeast int, which func(pod) bool) []about {
	pods := f.those(func(p pod) bool { return p.Condemned && p.live() && !p.Terminating && !f.another(p) && which(p) })
	if len(pods) < atLeast {
		return nil
	}
	return []about{{pod: pods[0], with: words{"pods": few(pods)}}}
}
