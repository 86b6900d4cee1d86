package differential

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// dig returns the value below o that the path names, nil if there is none.
func dig(o object, path ...string) any {
	var v any = o
	for _, p := range path {
		m, _ := v.(object)
		v = m[p]
	}
	return v
}

// view is an object as it is compared. Items of lists are without kind.
func (s *side) view(resource string, o object, item bool) string {
	m, _ := o[metadata].(object)
	out := object{
		"name": m["name"], "labels": m["labels"], annotations: texts(m[annotations]), "owners": m["ownerReferences"],
		"uid": s.uids[fmt.Sprint(m["uid"])], "rev": s.rank(m["resourceVersion"]), "created": m["creationTimestamp"] != nil,
		"deleted": m["deletionTimestamp"] != nil, "grace": m["deletionGracePeriodSeconds"],
	}
	if !item {
		out["kind"] = fmt.Sprint(o[apiVersion], " ", o["kind"])
	}
	if resource != pods && resource != leases { // idalloc does not read theirs
		out["generation"] = m["generation"]
	}
	if o["kind"] != "PartialObjectMetadata" && o["kind"] != "PartialObjectMetadataList" {
		for _, path := range [][]string{
			{"spec", replicas}, {"spec", "parallelism"}, {"spec", "selector"}, {"spec", "ordinals"}, {"spec", "strategy"}, {"spec", "nodeName"},
			{"spec", "template", metadata, annotations}, {status, "phase"}, {status, "reason"}, {status, "conditions"},
			{"spec", "holderIdentity"}, {"spec", "leaseDurationSeconds"}, {"spec", "renewTime"}, {status, "updatedReplicas"}, {status, "readyReplicas"}, {status, "availableReplicas"},
		} {
			if v := dig(o, path...); v != nil && (path[0] != "status" || v != int64(0)) { // which is as good as none
				out[strings.Join(path, ".")] = v
			}
		}
	}
	for key, v := range out {
		if v == nil {
			delete(out, key)
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// texts are annotations with what is long made short.
func texts(v any) any {
	m, ok := v.(object)
	if !ok {
		return v
	}
	out := object{}
	for key, value := range m {
		text, _ := value.(string)
		if len(text) > 300 {
			h := fnv.New32a()
			_, _ = h.Write([]byte(text)) // a hash never fails
			text = fmt.Sprintf("%d bytes with sum %x", len(text), h.Sum32())
		}
		out[key] = text
	}
	return out
}

// rank is the place of a resourceVersion among all that were seen.
func (s *side) rank(rv any) int {
	rev, err := strconv.ParseInt(fmt.Sprint(rv), 10, 64)
	if err != nil {
		return -1
	}
	i, _ := slices.BinarySearch(s.revs, rev)
	return i
}

// told returns what a watch said since it was asked last, object by object.
func (s *side) told(w *watched) []string {
	events := w.took()
	objects := make([]object, len(events))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range events {
		if err := utiljson.Unmarshal(e.Object, &objects[i]); err == nil && e.Type != "BOOKMARK" && e.Type != "ERROR" {
			s.seen(w.resource, objects[i])
		}
	}
	about := map[string][]string{}
	for i, e := range events {
		name, line := s.event(w, e.Type, objects[i])
		if e.Type == "BOOKMARK" && line != "" {
			line += fmt.Sprintf(" after %d", i)
		}
		if line != "" {
			about[name] = append(about[name], line)
		}
	}
	out := make([]string, 0, len(about))
	for name, lines := range about {
		out = append(out, fmt.Sprintf("%s: %s", name, strings.Join(lines, "\n      ")))
	}
	slices.Sort(out)
	return out
}

// event returns which object an event is about, empty for the watch itself, and what it says.
func (s *side) event(w *watched, kind string, o object) (name, line string) {
	switch kind {
	case "BOOKMARK":
		if dig(o, metadata, annotations, "k8s.io/initial-events-end") == nil {
			return "", "" // they come when a minute is over
		}
		return "", fmt.Sprintf("BOOKMARK of %v %v at the end of the beginning", o[apiVersion], o["kind"])
	case "ERROR":
		return "", fmt.Sprintf("ERROR %v %v", o["code"], o["reason"])
	}
	if o == nil {
		return "", kind
	}
	return fmt.Sprint(dig(o, metadata, "name")), kind + " " + s.view(w.resource, o, false)
}
