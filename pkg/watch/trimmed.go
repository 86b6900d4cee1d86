package watch

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// trimmed is a watch that trims each object as it arrives. It saves memory at the beginning, when the reflector collects all
// objects before it passes them on. Its goroutine ends with Stop even if nobody reads the channel any more; that of
// apimachinery's Filter does not.
type trimmed[T metav1.Object] struct {
	from    apiwatch.Interface
	trim    func(T) T
	out     chan apiwatch.Event
	stop    sync.Once
	stopped chan struct{}
}

func newTrimmed[T metav1.Object](from apiwatch.Interface, trim func(T) T) *trimmed[T] {
	w := &trimmed[T]{from: from, trim: trim, out: make(chan apiwatch.Event), stopped: make(chan struct{})}
	go w.run()
	return w
}

func (w *trimmed[T]) run() {
	defer close(w.out)
	for e := range w.from.ResultChan() {
		if o, is := e.Object.(T); is && e.Type != apiwatch.Bookmark { // the reflector reads a bookmark's annotations
			if kept, is := any(w.trim(o)).(runtime.Object); is {
				e.Object = kept
			}
		}
		select {
		case w.out <- e:
		case <-w.stopped:
			return
		}
	}
}

// ResultChan implements watch.Interface.
func (w *trimmed[T]) ResultChan() <-chan apiwatch.Event { return w.out }

// Stop implements watch.Interface.
func (w *trimmed[T]) Stop() {
	w.stop.Do(func() { close(w.stopped) })
	w.from.Stop()
}
