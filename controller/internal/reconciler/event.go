package reconciler

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/internal/sanitise"
	"github.com/idalloc/idalloc/pkg/allocator/store/kubeevent"
)

// event writes an Event. detail distinguishes Events with the same reason. A failure is only logged.
func (x *Reconciler) event(ctx context.Context, about metav1.OwnerReference, namespace, kind, reason, message string, detail ...string) {
	err := x.store.Tell(ctx, kubeevent.Event{
		About: about, Namespace: namespace, Reporter: x.name, Type: kind, Reason: reason, Message: message, Detail: strings.Join(detail, " "),
	})
	if err != nil && x.seldom(string(about.UID), "unwritten "+reason) {
		// Log: an Event could not be written; the line has its text.
		// Do: nothing at first. If it stays, check whether the controller may create Events.
		x.log.Info("cannot write an Event", "reason", reason, "message", message, "error", sanitise.Quoted(err.Error()))
	}
}

// seldom reports whether an Event with this reason about this object is due.
func (x *Reconciler) seldom(uid, reason string) bool {
	key := uid + " " + reason
	_, told := x.told.Get(key)
	if !told {
		x.told.Set(key, nil, again)
	}
	return !told
}

// warn writes a Warning, unless one with this reason and detail about this object was written a short time ago. It reports whether it was due.
func (p *pass) warn(ctx context.Context, about metav1.OwnerReference, reason, detail, message string) bool {
	due := p.seldom(string(about.UID), reason+" "+detail)
	if due {
		p.event(ctx, about, p.ref.Namespace, kubeevent.Warning, reason, message, detail)
	}
	return due
}

// aboutPod returns the reference to a pod for its Events.
func aboutPod(pod *podMeta) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: podKind, Name: pod.Name, UID: pod.UID}
}
