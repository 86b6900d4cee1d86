package world

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Program is what the idalloc of a revision's pods is like.
type Program struct {
	// Newer says that it is a newer one. It reads what this one writes, and writes a later format.
	Newer bool
	// Keyed says that its assignment is under OtherKey.
	Keyed bool
}

// OtherKey is the annotation key of programs that do not use the default.
const OtherKey = "example.com/ids"

// key is the annotation that the program keeps its assignment in.
func (p Program) key() string {
	if p.Keyed {
		return OtherKey
	}
	return assignment.DefaultKey
}

// The seals of this format and of the next one, in JSON.
var (
	thisFormat = regexp.MustCompile(`"` + strconv.Itoa(assignment.Format) + `(:\d+:[0-9a-f]{24}")`)
	nextFormat = regexp.MustCompile(`"` + strconv.Itoa(assignment.Format+1) + `(:\d+:[0-9a-f]{24}")`)
)

// later has the seals in JSON be of the next format, and earlier of this one.
func later(text []byte) []byte {
	return thisFormat.ReplaceAll(text, []byte(`"`+strconv.Itoa(assignment.Format+1)+"$1"))
}
func earlier(text []byte) []byte {
	return nextFormat.ReplaceAll(text, []byte(`"`+strconv.Itoa(assignment.Format)+"$1"))
}

// understood is an answer as a newer idalloc reads it: the code of this one runs, and must not see that a format is later.
func understood(r *http.Response, a server.Answer) *http.Response {
	if a.Stream != nil {
		r.Body = &frames{lines: bufio.NewReader(a.Stream), Closer: a.Stream}
		return r
	}
	r.Body = io.NopCloser(bytes.NewReader(earlier(a.Body)))
	return r
}

// frames reads a watch, one event after the other.
type frames struct {
	lines *bufio.Reader
	io.Closer
	rest []byte
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		line, err := f.lines.ReadBytes('\n')
		if f.rest = earlier(line); err != nil && len(line) == 0 {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// Read is what an owner says, in whatever format and under whatever key.
func Read(v *server.Version, now time.Time) assignment.Record {
	annotations := inThisFormat(object.Annotations(v.Object))
	r := assignment.Decode(annotations, assignment.DefaultKey, object.UID(v.Object), now)
	if r.OtherKey == OtherKey {
		return assignment.Decode(annotations, OtherKey, object.UID(v.Object), now)
	}
	return r
}

// inThisFormat changes the seals of a later format.
func inThisFormat(annotations map[string]string) map[string]string {
	for _, key := range seals() {
		if seal, there := annotations[key]; there {
			annotations[key] = string(bytes.Trim(earlier([]byte(`"`+seal+`"`)), `"`))
		}
	}
	return annotations
}

func seals() []string { return []string{assignment.SealKey, assignment.PartitionSealKey} }

// Mixes reports whether there ever were programs of more than one kind.
func (w *World) Mixes() bool { return len(w.Programs) > 0 }

// Leaves reports whether a process has to leave the map and the row of an owner as they are: idalloc wrote them, or nobody knows who did,
// and in a format that the process does not know, or under another key than its own.
func (w *World) Leaves(p *Process, owner *server.Version) (slots, row bool) {
	if !owner.Exists() || !w.Mixes() {
		return false, false
	}
	annotations := object.Annotations(owner.Object)
	if p.program.Newer {
		annotations = inThisFormat(annotations)
	}
	r := assignment.Decode(annotations, p.program.key(), object.UID(owner.Object), assignment.AnyTime())
	slots = (r.Newer > 0 || r.Elsewhere()) && !owner.ManagedByOthers(assignment.FieldManager, assignment.SealKey)
	row = r.Partitions.Newer > 0 && !owner.ManagedByOthers(assignment.FieldManager, assignment.PartitionSealKey)
	return slots, row
}

// CanRead reports whether a process can read all that the owner says now.
func (w *World) CanRead(p *Process) bool {
	slots, row := w.Leaves(p, w.Owner())
	return !slots && !row
}

// CanReadPod is CanRead of the process that is to run in a pod.
func (w *World) CanReadPod(v *server.Version) bool {
	return w.CanRead(&Process{program: w.Programs[MadeFrom(v)]})
}

// Roll has the user begin a revision whose pods have such a program.
func (w *World) Roll(as Program) {
	const apart = 1001 // so that no other revision has its number, odd ones and even ones
	version := apart * w.NextNumber()
	w.Programs[version] = as
	w.ChangeOwner(server.Writer{Manager: "kubectl-set"}, func(o object.Object) {
		object.Need(o, "spec", "template")["version"] = int64(version)
	})
}

// Unseal has an operator remove the seals.
func (w *World) Unseal() {
	w.ChangeOwner(server.Writer{Manager: "kubectl-annotate"}, func(o object.Object) {
		for _, key := range seals() {
			object.SetText(o, "annotations", key, "")
		}
	})
}

// Unite has an operator end a mix of programs: the workload gets one that can read all, and he scales all others to zero and deletes
// their pods, until none is left.
func (w *World) Unite() {
	owner := w.Owner()
	if owner == nil || !w.Mixes() {
		return
	}
	want := w.wanted(owner)
	if w.Programs[Template(owner.Object)] != want {
		w.Witness.Excuse()
		w.Roll(want)
	}
	left := false
	for _, rs := range w.Server.Objects(object.ReplicaSets) {
		if w.Profile.Resource == object.Deployments && w.Programs[Template(rs.Object)] != want {
			w.Scale(rs, 0) // so that it does not replace the pods
		}
	}
	for _, pod := range w.Server.Objects(object.Pods) {
		if w.Programs[MadeFrom(pod)] != want {
			left = true
			w.Witness.Excuse()
			w.Server.DeletePod(pod.Name, w.Profile.Grace)
		}
	}
	if left {
		w.After(10*time.Second, w.Unite)
	}
}

// wanted is the program that can read what all others wrote.
func (w *World) wanted(owner *server.Version) Program {
	want := w.Programs[Template(owner.Object)]
	annotations := object.Annotations(owner.Object)
	r := assignment.Decode(annotations, assignment.DefaultKey, object.UID(owner.Object), assignment.AnyTime())
	want.Newer = want.Newer || r.Newer > 0 || r.Partitions.Newer > 0 || slices.ContainsFunc(w.Server.Objects(object.Pods), func(pod *server.Version) bool {
		return w.Programs[MadeFrom(pod)].Newer
	})
	if r := Read(owner, assignment.AnyTime()); r.Sealed && len(r.State.Slots) > 0 {
		want.Keyed = r.Key == OtherKey
	}
	return want
}
