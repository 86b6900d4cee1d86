package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// API is how a stream of T reaches its objects.
type API[T metav1.Object] struct {
	List  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	Watch func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error)
	// Type is an empty object of the type that both give.
	Type runtime.Object
	// Trim, if set, returns what is kept of an object: what somebody will read, and the resourceVersion.
	Trim func(T) T
	// Same, if set, says that nobody cares for the change from one moment of an object to another. It
	// sees trimmed objects.
	Same func(before, now T) bool
	// Heard, if set, is told of every moment of every object, also of those that were replaced by a newer one before anybody
	// asked. It must not block.
	Heard func(T)
}

// Stream follows the objects of one list request. Make it with Follow; it ends with its context.
type Stream[T metav1.Object] struct {
	mu      sync.Mutex
	objects map[string]T // by name
	synced  bool
	err     error // of the last request, nil while the watch is up
	since   time.Time
	denied  Denial
	up      bool // a watch was permitted
	changed chan struct{}
	done    chan struct{}
	now     func() time.Time
	trim    func(T) T
	same    func(before, now T) bool
	heard   func(T)
}

// Follow starts to follow what api lists, in a goroutine that ends with ctx. The options of each
// request are completed by restrict, for example with a field selector.
func Follow[T metav1.Object](ctx context.Context, name string, api API[T], restrict func(*metav1.ListOptions), now func() time.Time, log logr.Logger) *Stream[T] {
	s := &Stream[T]{objects: map[string]T{}, changed: make(chan struct{}, 1), done: make(chan struct{}), now: now, trim: api.Trim, same: api.Same, heard: api.Heard}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			restrict(&o)
			ctx, cancel := context.WithTimeout(ctx, store.RequestTimeout) // a list whose answer is lost is asked for again
			defer cancel()
			list, err := api.List(ctx, o)
			s.answered(err, false)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			restrict(&o)
			w, err := api.Watch(ctx, o)
			s.answered(err, true)
			if err != nil && o.SendInitialEvents != nil {
				// The reflector repeats this one request in a sleep that its context does not end, if
				// it can see why it failed; like this it lists instead, and waits with its context.
				err = errors.New(err.Error())
			}
			if err != nil || api.Trim == nil {
				return w, err
			}
			return newTrimmed(w, api.Trim), nil
		},
	}
	// What goes wrong with a watch is told by Stale; the reflector's own lines, which are errors at
	// every try, are details.
	detail := logr.Discard()
	if log.V(1).Enabled() {
		detail = log.V(1)
	}
	reflector := cache.NewReflectorWithOptions(lw, api.Type, (*sink[T])(s), cache.ReflectorOptions{
		Name:   name,
		Logger: &detail,
		// From a quarter of a second to half a minute, each up to doubled at random, so that a
		// thousand pods do not come back to a restarted API server at once.
		Backoff: &wait.Backoff{Duration: 250 * time.Millisecond, Cap: 15 * time.Second, Steps: 60, Factor: 2, Jitter: 1},
	})
	go func() {
		defer close(s.done)
		reflector.RunWithContext(klog.NewContext(ctx, detail))
	}()
	return s
}

// ByName restricts a stream to one object.
func ByName(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

// Changed gets a value after something changed: an object, or whether the stream is up. Changes
// that nobody took yet are one. Only one goroutine may receive from it.
func (s *Stream[T]) Changed() <-chan struct{} { return s.changed }

// Done is closed when the stream's goroutine has ended.
func (s *Stream[T]) Done() <-chan struct{} { return s.done }

// Get returns the newest moment of the object; ok is false while none is known.
func (s *Stream[T]) Get(name string) (object T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok = s.objects[name]
	return object, ok
}

// Objects returns the newest moment of every object.
func (s *Stream[T]) Objects() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]T, 0, len(s.objects))
	for _, o := range s.objects {
		out = append(out, o)
	}
	return out
}

// Synced reports whether a whole list was received.
func (s *Stream[T]) Synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// Stale returns since when and why the stream is not up; the error is nil while it is.
func (s *Stream[T]) Stale() (since time.Time, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.err
}

// Denial is a refusal of list or watch by RBAC.
type Denial struct {
	// Err is the last refusal, nil if there is none. Verb is what it refused.
	Err  error
	Verb string
	// First and Last are the times of the refusals without another answer in between.
	First, Last time.Time
}

// Lasted returns how long the refusals have gone on.
func (d Denial) Lasted() time.Duration { return d.Last.Sub(d.First) }

// Denied returns how RBAC refuses the stream, if it never permitted it. A stream that was up once is
// Stale rather than Denied: its process still has what it heard.
func (s *Stream[T]) Denied() Denial {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.denied
}

func (s *Stream[T]) answered(err error, isWatch bool) {
	if errors.Is(err, context.Canceled) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the end of the stream, or the reflector's ordinary way back to a list
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteDenied(err, isWatch)
	if !isWatch && err == nil {
		return // a list that works says nothing of the watch that follows
	}
	if (err == nil) == (s.err == nil) {
		s.err = err
		return
	}
	s.err, s.since = err, s.now()
	s.notify()
}

// noteDenied notifies at every refusal, so that whoever waits can look how long it has lasted.
func (s *Stream[T]) noteDenied(err error, isWatch bool) {
	switch {
	case err == nil && isWatch:
		s.up, s.denied = true, Denial{}
	case err == nil: // a list may be permitted and its watch not
	case !apierrors.IsForbidden(err):
		s.denied = Denial{}
	case !s.up:
		now := s.now()
		if s.denied.Err == nil {
			s.denied.First = now
		}
		s.denied.Err, s.denied.Last, s.denied.Verb = err, now, "list"
		if isWatch {
			s.denied.Verb = "watch"
		}
		s.notify()
	}
}

func (s *Stream[T]) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// sink is the stream as the reflector sees it.
type sink[T metav1.Object] Stream[T]

// with lets do change s, and tells of it if do says so.
func (k *sink[T]) with(do func(s *Stream[T]) (changed bool)) error {
	s := (*Stream[T])(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if do(s) {
		s.notify()
	}
	return nil
}

// Add implements cache.ReflectorStore.
func (k *sink[T]) Add(obj any) error {
	return k.with(func(s *Stream[T]) bool {
		o, ok := obj.(T)
		if !ok {
			return true
		}
		before, known := s.objects[o.GetName()]
		now := s.keep(o)
		return !known || s.same == nil || !s.same(before, now)
	})
}

func (s *Stream[T]) keep(o T) T {
	if s.heard != nil {
		s.heard(o)
	}
	if s.trim != nil {
		o = s.trim(o)
	}
	s.objects[o.GetName()] = o
	return o
}

// Update implements cache.ReflectorStore.
func (k *sink[T]) Update(obj any) error { return k.Add(obj) }

// Delete implements cache.ReflectorStore.
func (k *sink[T]) Delete(obj any) error {
	return k.with(func(s *Stream[T]) bool {
		if o, ok := obj.(T); ok {
			delete(s.objects, o.GetName())
		}
		return true
	})
}

// Replace implements cache.ReflectorStore.
func (k *sink[T]) Replace(list []any, _ string) error {
	return k.with(func(s *Stream[T]) bool {
		s.synced = true
		s.objects = make(map[string]T, len(list))
		for _, obj := range list {
			if o, ok := obj.(T); ok {
				s.keep(o)
			}
		}
		return true
	})
}

// Resync implements cache.ReflectorStore; there is nothing to do.
func (k *sink[T]) Resync() error { return nil }
