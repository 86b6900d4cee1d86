package idalloc

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/apifake"
)

// hangs runs a program in a pod whose function for one partition returns only when the returned channel is closed.
func (y *yard) hangs(name string, partition int) (letGo chan struct{}) {
	y.pod(name)
	letGo = make(chan struct{})
	end := y.program(name, func(number int) {
		if number == partition {
			<-letGo
		}
	})
	y.t.Cleanup(func() {
		select {
		case <-letGo:
		default:
			close(letGo)
		}
		end()
	})
	return letGo
}

// count sets the number of partitions.
func (y *yard) count(partitions string) {
	y.api.Change(apifake.Deployment, apifake.Worker, func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		annotations[assignment.PartitionCountKey] = partitions
		o.SetAnnotations(annotations)
	})
}

func TestAFunctionThatDoesNotReturnKeepsItsPartitionAndNoOther(t *testing.T) {
	y := newYard(t)
	letGo := y.hangs("a", 3)
	y.until(map[string]int{"a": 4})
	end := y.run("b") // 2 and 3 are to move
	y.until(map[string]int{"a": 3, "b": 1})
	y.count("8") // a takes a new one, although 3 hangs
	y.until(map[string]int{"a": 4, "b": 4})
	y.count("4") // and lets it go
	y.until(map[string]int{"a": 3, "b": 1})
	close(letGo)
	y.until(map[string]int{"a": 2, "b": 2})
	end()
}

// A function that a test ends, say, must not keep its partition for ever.
func TestAFunctionThatEndsItsGoroutineHasReturned(t *testing.T) {
	y := newYard(t)
	err := RunPartitions(t.Context(), y.pod("a"), func(ctx context.Context, p Partition) error {
		if p.Number == 2 {
			runtime.Goexit()
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "partition 2") {
		t.Errorf("the error is %v", err)
	}
}
