package assignment

// Undone reports whether others have undone part of s, the last written state: for some pod, is differs from s, and next changes that again, perhaps in
// another way. The Row is not compared.
func (s State) Undone(is, next State) bool {
	if s.Slots == nil {
		return false // nothing was written
	}
	was, now, then := s.entries(), is.entries(), next.entries()
	again := func(name string) bool {
		before, after := now[name], then[name]
		if after.slot != 0 && before == (entry{asks: after.slot}) && was[name].slot != after.slot {
			return false // it gets what it asked for, for the first time
		}
		return was[name] != before && before != after
	}
	for name := range now {
		if again(name) {
			return true
		}
	}
	for name := range then {
		if again(name) {
			return true
		}
	}
	return false
}

// entry is what a state has about a pod. Both count from 1: 0 is nothing.
type entry struct{ slot, asks int }

func (s State) entries() map[string]entry {
	out := make(map[string]entry, len(s.Slots)+len(s.Handover))
	for id, name := range s.Handover {
		out[name] = entry{asks: id + 1}
	}
	for id, name := range s.Slots {
		out[name] = entry{slot: id + 1, asks: out[name].asks}
	}
	return out
}
