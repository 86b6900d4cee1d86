package allocator

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// eventTimeout bounds the time that the loop spends on telling.
const eventTimeout = 5 * time.Second

// warn tells of damage that this pod has repaired, in the log and in a Warning Event.
func (a *Allocator) warn(ctx context.Context, reason, message string, about metav1.OwnerReference) {
	a.log.Info("damage repaired", "reason", reason, "detail", message)
	a.tell(ctx, store.Event{About: about, Type: store.EventWarning, Reason: reason, Message: message})
}

// note is warn for what is no damage.
func (a *Allocator) note(ctx context.Context, reason, message string, about metav1.OwnerReference) {
	a.log.Info("assignment brought up to date", "reason", reason, "detail", message)
	a.tell(ctx, store.Event{About: about, Type: store.EventNormal, Reason: reason, Message: message})
}

// tell leaves an Event. It is best effort: one that cannot be written is logged.
func (a *Allocator) tell(ctx context.Context, e store.Event) (told bool) {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	e.Namespace, e.Reporter = a.o.Namespace, a.o.Pod
	if err := a.store.Tell(ctx, e); err != nil {
		a.log.V(1).Info("the event could not be written", "reason", err.Error())
		return false
	}
	return true
}
