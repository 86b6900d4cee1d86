package server

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/idalloc/idalloc/test/simulation/object"
)

// Managers are the field managers and the annotations that each owns. Cleared managers track nothing until
// the next server-side apply, as on the real server.
type Managers struct {
	owned map[string]map[string]bool
	// at is the second in which each took a field last.
	at      map[string]int64
	cleared bool
}

func (m Managers) equal(o Managers) bool {
	return m.cleared == o.cleared && maps.EqualFunc(m.owned, o.owned, maps.Equal[map[string]bool, map[string]bool])
}

// beforeApply is the manager to whom the real server gives all fields that were there when tracking begins.
const beforeApply = "before-first-apply"

// Of more than maxManagers that make updates the real server merges the oldest into one.
const (
	MaxManagers = 10
	merged      = "ancient-changes"
)

// capped merges the oldest managers, as the real server's capManagersManager does.
func (m Managers) capped() {
	var updaters []string
	for id := range m.owned {
		if _, operation, _ := managerOf(id); operation == "Update" {
			updaters = append(updaters, id)
		}
	}
	slices.SortFunc(updaters, func(a, b string) int { return cmp.Or(cmp.Compare(m.at[a], m.at[b]), cmp.Compare(a, b)) })
	left, first := len(updaters), ""
	for _, id := range updaters {
		if left <= MaxManagers {
			return
		}
		if first == "" {
			first = id
			continue
		}
		if m.owned[merged] == nil {
			m.owned[merged] = m.owned[first]
			delete(m.owned, first)
		}
		if id != merged {
			maps.Copy(m.owned[merged], m.owned[id])
			delete(m.owned, id)
			m.at[merged] = m.at[id]
		}
		left--
	}
}

// updated returns who owns what after the change from old to next, at a time in seconds.
func (m Managers) updated(old, next object.Object, by Writer, now int64) Managers {
	was, is := object.At(old, object.Metadata, "annotations"), object.At(next, object.Metadata, "annotations")
	if by.Fields != nil {
		return *by.Fields
	}
	if fieldsCleared(next) {
		return Managers{cleared: true}
	}
	if m.cleared && !by.Apply {
		return m
	}
	out := Managers{owned: map[string]map[string]bool{}, at: map[string]int64{}}
	maps.Copy(out.at, m.at)
	for manager, keys := range m.owned {
		out.owned[manager] = maps.Clone(keys)
	}
	if m.cleared {
		for key := range was {
			out.own(beforeApply, key)
		}
	}
	for key := range was {
		if _, still := is[key]; !still {
			out.disown(key)
		}
	}
	manager := by.Manager
	if by.Apply {
		manager += applySuffix
	}
	if by.Status {
		manager += statusSuffix
	}
	for key, value := range is {
		if before, there := was[key]; there && before == value {
			continue
		}
		out.disown(key)
		out.own(manager, key)
		out.at[manager] = now
	}
	if !by.Apply {
		out.capped()
	}
	return out
}

// fieldsCleared reports that a client set managedFields to an empty list.
func fieldsCleared(next object.Object) bool {
	after, there := object.At(next, object.Metadata)["managedFields"].([]any)
	if len(after) == 1 {
		only, _ := after[0].(object.Object)
		return len(only) == 0
	}
	return there && len(after) == 0
}

func (m Managers) own(manager, key string) {
	if m.owned[manager] == nil {
		m.owned[manager] = map[string]bool{}
	}
	m.owned[manager][key] = true
}

func (m Managers) disown(key string) {
	for manager, keys := range m.owned {
		delete(keys, key)
		if len(keys) == 0 {
			delete(m.owned, manager)
		}
	}
}

// write puts m into metadata as the real server shows it.
func (m Managers) write(meta object.Object) {
	delete(meta, "managedFields")
	entries := make([]any, 0, len(m.owned))
	for _, id := range slices.Sorted(maps.Keys(m.owned)) {
		annotations := object.Object{}
		for key := range m.owned[id] {
			annotations["f:"+key] = object.Object{}
		}
		manager, operation, subresource := managerOf(id)
		entry := object.Object{
			"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
			"fieldsV1": object.Object{"f:metadata": object.Object{"f:annotations": annotations}},
		}
		if subresource != "" {
			entry["subresource"] = subresource
		}
		entries = append(entries, entry)
	}
	if len(entries) > 0 {
		meta["managedFields"] = entries
	}
}

// managersOf reads the managers that metadata names, as write shows them. It returns nil if it names none.
func managersOf(meta object.Object) *Managers {
	entries, _ := meta["managedFields"].([]any)
	if len(entries) == 0 {
		return nil
	}
	m := &Managers{owned: map[string]map[string]bool{}}
	for _, e := range entries {
		entry, _ := e.(object.Object)
		id := object.Text(entry, "manager")
		switch {
		case object.Text(entry, "operation") == "Apply":
			id += applySuffix
		case object.Text(entry, "subresource") == "status":
			id += statusSuffix
		}
		for field := range object.At(entry, "fieldsV1", "f:metadata", "f:annotations") {
			m.own(id, strings.TrimPrefix(field, "f:"))
		}
	}
	return m
}

// What is added to the name of a manager that applies, and of one that writes the status.
const applySuffix, statusSuffix = "/apply", "/status"

func managerOf(id string) (manager, operation, subresource string) {
	if name, is := strings.CutSuffix(id, applySuffix); is {
		return name, "Apply", ""
	}
	if name, is := strings.CutSuffix(id, statusSuffix); is {
		return name, "Update", "status"
	}
	return id, "Update", ""
}
