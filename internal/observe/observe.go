package observe

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/internal/conformance"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Object identifies a version of a pod or a Lease.
type Object struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
	Version   string `json:"resourceVersion,omitempty"`
}

// Finding is a step that the protocol does not allow.
type Finding struct {
	Time time.Time `json:"time"`
	// Level is "warning", or "accusation" if the evidence shows who wrote.
	Level string `json:"level"`
	// Step and Rule have the names of the proof.
	Step  string `json:"step"`
	Rule  string `json:"rule"`
	Thing string `json:"thing,omitempty"`
	// Object broke the rule. Others have the same thing.
	Object Object   `json:"object"`
	Others []Object `json:"others,omitempty"`
}

// Levels of a finding.
const (
	Warning    = "warning"
	Accusation = "accusation"
)

// Observer checks what it is shown. It is safe for concurrent use.
type Observer struct {
	mu       sync.Mutex
	recorder conformance.Recorder
	level    string
	now      func() time.Time
	began    time.Time
	objects  map[string]Object
	tell     func(Finding)
	findings map[string]int
	// told holds, by UID, the version for which an object's last finding was reported.
	told map[string]string
}

// New returns an Observer that calls tell once for each finding.
func New(level string, now func() time.Time, tell func(Finding)) *Observer {
	o := &Observer{level: level, now: now, began: now(), tell: tell, objects: map[string]Object{}, findings: map[string]int{}, told: map[string]string{}}
	o.recorder.Refused, o.recorder.Assumed = o.refused, o.refused
	return o
}

// Findings counts how often each rule was broken.
func (o *Observer) Findings() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.findings)
}

func (o *Observer) refused(s conformance.Step, err error) {
	o.find(string(s.Do), conformance.Rule(err), s.Thing, s.Pod, o.recorder.Others(s))
}

// find reports a finding. It reports only the first one for each version of an object, because the others follow from it.
func (o *Observer) find(step, rule, thing, uid string, others []string) {
	if is := o.objects[uid]; is.Version != "" && o.told[uid] == is.Version {
		return
	}
	o.told[uid] = o.objects[uid].Version
	f := Finding{Time: o.now(), Level: o.level, Step: step, Rule: rule, Thing: thing, Object: o.objects[uid]}
	for _, other := range others {
		f.Others = append(f.Others, o.objects[other])
	}
	o.findings[rule]++
	o.tell(f)
}

func (o *Observer) at() time.Duration { return o.now().Sub(o.began) }

// Pod records a version of a live pod. by is nil if the writer is unknown. first: this version may be of any age.
func (o *Observer) Pod(pod *metav1.ObjectMeta, by *conformance.Write, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	uid := string(pod.UID)
	_, known := o.objects[uid]
	if !known && pod.Annotations[receipt.Key] == "" && pod.Annotations[receipt.IDKey] == "" {
		return
	}
	o.objects[uid] = Object{strings.Clone(pod.Namespace), strings.Clone(pod.Name), strings.Clone(uid), strings.Clone(pod.ResourceVersion)}
	if first && !known {
		o.recorder.Resume(pod, worksOf(pod, nil))
		o.offer(pod, o.recorder.Locked(uid)) // its T3 may have been before this version
		return
	}
	w := conformance.Write{At: o.at()}
	if by != nil {
		w = *by
		w.At = o.at()
	} else {
		w.By, w.Patch = guessed(pod), conformance.Patch{Version: true, Receipt: pod.Annotations[receipt.Key]}
	}
	before := o.recorder.Locked(uid)
	works := worksOf(pod, o.recorder.Working(uid))
	if now := conformance.ReceiptOf(pod); w.By == conformance.Process {
		kept := o.recorder.Working(uid)
		maps.DeleteFunc(kept, func(x string, _ int64) bool { return !slices.Contains(now.Locks, x) })
		o.recorder.Works(uid, kept, w.At)
	}
	o.recorder.Pod(pod, w)
	if by == nil {
		o.offer(pod, append(slices.Clone(before), o.recorder.Locked(uid)...))
	}
	o.recorder.Works(uid, works, w.At)
	o.counted(pod)
}

// offer assumes that all pods that lock these things do T3 when the API server has stored this version of a pod, because a watch shows no lists.
func (o *Observer) offer(pod *metav1.ObjectMeta, things []string) {
	if version, err := strconv.ParseInt(pod.ResourceVersion, 10, 64); err == nil {
		o.recorder.Offer(version, things...)
	}
}

// guessed guesses who wrote a pod's receipt: the pod or the controller if the receipt is readable and its labels make it visible, otherwise another writer.
func guessed(pod *metav1.ObjectMeta) conformance.Author {
	r, err := receipt.Anywhere(pod)
	switch {
	case err != nil || r.State == receipt.None || r.State == receipt.Locks && len(conformance.ReceiptOf(pod).Locks) == 0:
		return conformance.Another
	case pod.Labels[receipt.AssignLabel] == receipt.ByController:
		return conformance.Controller
	}
	return conformance.Process
}

// worksOf returns what a pod works on, with its tokens: what its receipt notes, or has begun. What the pod worked on before counts while its receipt locks it.
func worksOf(pod *metav1.ObjectMeta, before map[string]int64) map[string]int64 {
	now, out := conformance.ReceiptOf(pod), map[string]int64{}
	r, _ := receipt.Anywhere(pod)
	switch {
	case r.State == receipt.Locks:
	case pod.Labels[receipt.AssignLabel] != receipt.ByController && (r.State == receipt.Waits || r.State == receipt.GaveUp):
		return nil
	default:
		return before
	}
	for x, token := range before {
		if slices.Contains(now.Locks, x) || now.Begun {
			out[x] = token
		}
	}
	if now.Begun && len(now.Locks) > 0 {
		out[now.Locks[0]] = tokenOf(pod)
	}
	if len(now.Notes) == 0 {
		return out
	}
	owner := assignment.OwnerLabelValue(r.Owner)
	out[now.Notes[0]] = r.Token
	for _, s := range r.Tokens {
		for k := range s.Set.All() {
			out[conformance.Partition(pod.Namespace, owner, k)] = s.Token
		}
	}
	return out
}

// tokenOf returns the token in the identity of a gated pod, or 0.
func tokenOf(pod *metav1.ObjectMeta) int64 {
	var id identity.Identity
	if json.Unmarshal([]byte(pod.Annotations[receipt.IdentityKey]), &id) != nil {
		return 0
	}
	return id.Token
}

// counted reports a finding if a gated pod's id was not below the count when it began.
func (o *Observer) counted(pod *metav1.ObjectMeta) {
	id, failed := strconv.Atoi(pod.Annotations[receipt.IDKey])
	count, err := strconv.Atoi(pod.Annotations[receipt.StartCountKey])
	if failed == nil && err == nil && id >= count {
		o.find(string(conformance.Begin), "the id is below the count", pod.Annotations[receipt.IDKey], string(pod.UID), nil)
	}
}

// Gone records that a pod has ended.
func (o *Observer) Gone(uid string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	locked := o.recorder.Locked(uid)
	o.recorder.Forget(uid)
	delete(o.objects, uid)
	delete(o.told, uid)
	o.recorder.Offer(0, locked...)
}

// Listed records an answer to a list. Only an audit log has these.
func (o *Observer) Listed(l conformance.List) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.recorder.Listed(l)
}

// forget drops all pods, so that they count as new: what happened meanwhile was not seen. It keeps the tokens.
func (o *Observer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid := range o.objects {
		o.recorder.Forget(uid)
		delete(o.objects, uid)
	}
}

// Lease records a version of a Lease, or its deletion. With first, nothing was seen of the Lease before, so it counts as expired.
func (o *Observer) Lease(l *Lease, gone, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	name, owner := l.Namespace+"/"+l.Name, l.Labels[receipt.OwnerLabel]
	_, holder, _ := strings.Cut(l.Spec.HolderIdentity, "/")
	var locks []string
	r, err := receipt.Parse(l.Annotations[receipt.Key])
	if gone || holder == "" || err != nil || r.State != receipt.Locks {
		holder = ""
	} else {
		locks = append(locks, conformance.Slot(l.Namespace, owner, r.Share.ID))
		for k := range r.Share.Partitions.All() {
			locks = append(locks, conformance.Partition(l.Namespace, owner, k))
		}
	}
	if holder != "" && o.objects[holder].Name == "" {
		o.objects[holder] = Object{Namespace: l.Namespace, Name: strings.Split(l.Spec.HolderIdentity, "/")[0], UID: holder}
	}
	at := o.at()
	until := at
	if written := l.Spec.RenewTime; written != nil { // a watch may show it late
		until = min(at, written.Sub(o.began))
	}
	until += time.Duration(l.Spec.Seconds) * time.Second
	if first {
		o.recorder.ForgetLease(name)
		until = at
	}
	o.recorder.Lease(name, holder, conformance.Process, locks, at, until)
}

// Lease holds the fields of a Lease that matter here.
type Lease struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		HolderIdentity string `json:"holderIdentity"`
		Seconds        int    `json:"leaseDurationSeconds"`
		// RenewTime is by the clock of the holder's node.
		RenewTime *metav1.MicroTime `json:"renewTime"`
	} `json:"spec"`
}
