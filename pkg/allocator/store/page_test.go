package store

import (
	"runtime"
	"runtime/debug"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
)

// BenchmarkLargePods lists 500 pods of 256 KiB, and reports how much is in memory at most.
func BenchmarkLargePods(b *testing.B) {
	for name, list := range map[string]func(s *Store, seen func()) error{
		"metadata": func(s *Store, seen func()) error {
			return s.EachPod(b.Context(), "shop", metav1.ListOptions{}, func(*metav1.PartialObjectMetadata) { seen() })
		},
		"whole": func(s *Store, seen func()) error {
			return s.EachFullPod(b.Context(), "shop", metav1.ListOptions{}, func() {}, func(*unstructured.Unstructured) { seen() })
		},
		"leases": func(s *Store, seen func()) error {
			return s.eachObject(b.Context(), request.Target{GVR: slotlease.Resource, Namespace: "shop"}, metav1.ListOptions{}, 0, func() {}, func(*unstructured.Unstructured) { seen() })
		},
		"receipts": func(s *Store, seen func()) error {
			_, _, err := s.Receipts(b.Context(), theRef(), Sought{IDs: []int{0}})
			seen()
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			var most uint64
			look := func() {
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
			}
			s := (&book{pods: 500, bytes: 256 << 10, wrote: look}).store(b)
			defer debug.SetGCPercent(debug.SetGCPercent(10))
			for b.Loop() {
				if err := list(s, look); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(most)/(1<<20), "MiB-held")
		})
	}
}
