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

	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// API gives a stream access to its objects, which have the type T.
type API[T metav1.Object] struct {
	// List and Watch send the requests. All objects that they return must have the type T.
	List  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	Watch func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error)
	// Type is an empty object of the type T.
	Type runtime.Object
	// Trim, if set, returns the part of an object that the stream keeps. It must keep the name and the resourceVersion.
	Trim func(T) T
	// Same, if set, reports whether Changed may ignore a change of an object. It gets trimmed objects.
	Same func(before, now T) bool
}

// Stream follows the objects of one list request. Follow makes it, and it ends with its context. Its methods do not block and are safe for concurrent use.
type Stream[T metav1.Object] struct {
	mu      sync.Mutex
	objects map[string]T // by name
	synced  bool
	err     error     // the error of the last request, nil while the watch is up
	since   time.Time // the time of the last change from up to not up, or back
	denied  Denial
	up      bool // a watch was permitted at least once
	changed chan struct{}
	done    chan struct{}
	now     func() time.Time
	trim    func(T) T
	same    func(before, now T) bool
}

// Follow starts a stream in a goroutine that ends with ctx. name appears in log details. restrict completes the options of each request, for example with a
// field selector. now is the clock for Stale and Denied. Follow does not fail: it repeats failed requests and ended watches, with increasing waits.
func Follow[T metav1.Object](ctx context.Context, name string, api API[T], restrict func(*metav1.ListOptions), now func() time.Time, log logr.Logger) *Stream[T] {
	s := &Stream[T]{objects: map[string]T{}, changed: make(chan struct{}, 1), done: make(chan struct{}), now: now, trim: api.Trim, same: api.Same}
	brake := newBrake(now)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			restrict(&o)
			ctx, cancel := context.WithTimeout(ctx, request.Timeout) // the reflector repeats a list without an answer
			defer cancel()
			list, err := api.List(ctx, o)
			s.answered(err, false)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			restrict(&o)
			brake.wait(ctx)
			w, err := api.Watch(ctx, o)
			brake.asked(err)
			s.answered(err, true)
			if err != nil && o.SendInitialEvents != nil {
				// If the reflector knew why this request failed, it might repeat it after a sleep that ctx does not end. An error without a type makes it
				// list instead, with a wait that ctx ends.
				err = errors.New(err.Error())
			}
			return w, err
		},
	}
	// Stale reports what is wrong with a watch. The reflector's own lines are details: it logs an error at every try.
	detail := logr.Discard()
	if log.V(1).Enabled() {
		detail = log.V(1)
	}
	reflector := cache.NewReflectorWithOptions(lw, api.Type, (*sink[T])(s), cache.ReflectorOptions{
		Name:   name,
		Logger: &detail,
		// The waits grow from 250 ms to 15 s, plus a random part of up to the same length, so that a thousand pods do not return to a restarted API server
		// at once.
		Backoff: &wait.Backoff{Duration: 250 * time.Millisecond, Cap: 15 * time.Second, Steps: 60, Factor: 2, Jitter: 1},
	})
	go func() {
		defer close(s.done)
		reflector.RunWithContext(klog.NewContext(ctx, detail))
	}()
	return s
}

// ByName is a restrict function for Follow. It restricts a stream to the object of this name.
func ByName(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

// Changed returns a channel that gets a value after an object has changed, and after the stream has gone down or come up. It holds one value for all
// changes since the last receive. Only one goroutine may receive from it.
func (s *Stream[T]) Changed() <-chan struct{} { return s.changed }

// Wake makes the stream use this channel instead of Changed's. Several streams may share one. It must hold one value.
func (s *Stream[T]) Wake(channel chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = channel
	s.notify() // something may have changed already
}

// Done returns a channel that is closed when the stream's goroutine has ended.
func (s *Stream[T]) Done() <-chan struct{} { return s.done }

// Get returns the newest version of the object of this name. ok is false if none is known.
func (s *Stream[T]) Get(name string) (object T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok = s.objects[name]
	return object, ok
}

// Objects returns the newest version of every object.
func (s *Stream[T]) Objects() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]T, 0, len(s.objects))
	for _, o := range s.objects {
		out = append(out, o)
	}
	return out
}

// Synced reports whether the stream has received a whole list.
func (s *Stream[T]) Synced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// Stale returns why the stream is down, and since when. While the stream is up, why is nil.
func (s *Stream[T]) Stale() (since time.Time, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.err
}

// Denial is a refusal of list or watch by RBAC.
type Denial struct {
	// Err is the last refusal, nil if there is none. Verb is the verb that it refused.
	Err  error
	Verb string
	// First and Last are the times of the first and the last of these refusals. Any other answer ends the series.
	First, Last time.Time
}

// Lasted returns how long the refusals have lasted.
func (d Denial) Lasted() time.Duration { return d.Last.Sub(d.First) }

// Denied returns the refusals of a stream that RBAC has never permitted. A stream that was once up is stale rather than denied, because its objects are
// still known.
func (s *Stream[T]) Denied() Denial {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.denied
}

// answered records the result of a request.
func (s *Stream[T]) answered(err error, isWatch bool) {
	if errors.Is(err, context.Canceled) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // the stream ends, or its resource version has expired and the reflector lists again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteDenied(err, isWatch)
	if !isWatch && err == nil {
		return // the watch after the list may still fail
	}
	if (err == nil) == (s.err == nil) {
		s.err = err
		return
	}
	s.err, s.since = err, s.now()
	s.notify()
}

// noteDenied records refusals by RBAC. It notifies at each refusal, so that a caller can check how long they have lasted.
func (s *Stream[T]) noteDenied(err error, isWatch bool) {
	switch {
	case err == nil && isWatch:
		s.up, s.denied = true, Denial{}
	case err == nil: // the list is permitted, but the watch may not be
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

// with calls do under the lock, and notifies if do returns true.
func (k *sink[T]) with(do func(s *Stream[T]) (changed bool)) {
	s := (*Stream[T])(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if do(s) {
		s.notify()
	}
}

// Add implements cache.ReflectorStore.
func (k *sink[T]) Add(obj any) error {
	k.with(func(s *Stream[T]) bool {
		o, ok := obj.(T)
		if !ok {
			return true
		}
		before, known := s.objects[o.GetName()]
		now := s.keep(o)
		return !known || s.same == nil || !s.same(before, now)
	})
	return nil
}

func (s *Stream[T]) keep(o T) T {
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
	k.with(func(s *Stream[T]) bool {
		if o, ok := obj.(T); ok {
			delete(s.objects, o.GetName())
		}
		return true
	})
	return nil
}

// Replace implements cache.ReflectorStore.
func (k *sink[T]) Replace(list []any, _ string) error {
	k.with(func(s *Stream[T]) bool {
		s.synced = true
		s.objects = make(map[string]T, len(list))
		for _, obj := range list {
			if o, ok := obj.(T); ok {
				s.keep(o)
			}
		}
		return true
	})
	return nil
}

// Transformer implements cache.TransformingStore. The reflector collects all objects before it passes them on, so it should keep only the part of each that
// the stream keeps.
func (k *sink[T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(T); ok && k.trim != nil {
			return k.trim(o), nil
		}
		return obj, nil
	}
}

// Resync implements cache.ReflectorStore; there is nothing to do.
func (k *sink[T]) Resync() error { return nil }
