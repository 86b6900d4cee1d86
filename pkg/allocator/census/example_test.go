package census_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// Survey lists the live pods of an owner without changing anything. A program in a cluster gets its Store from store.New, and the owner from
// Store.Get.
func ExampleSurvey() {
	owner := store.Owner{
		Ref:      kinds.Ref{APIVersion: "apps/v1", Kind: kinds.Deployment, Namespace: "shop", Name: "worker"},
		Selector: "app=worker",
	}
	s := storeWith(
		pod("worker-a", `{"uid":"worker-a-uid","owner":"Deployment/worker","id":0,"write":"1"}`),
		pod("worker-c", ""),
	)

	pods, err := census.Survey(context.Background(), s, owner)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range pods {
		fmt.Printf("%s locks slot 0: %t\n", p.Name, p.Receipt.LocksSlot(0))
	}
	// Output:
	// worker-a locks slot 0: true
	// worker-c locks slot 0: false
}

// storeWith returns a Store whose API server has these pods.
func storeWith(pods ...*corev1.Pod) *store.Store {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	whole, metadata := make([]runtime.Object, 0, len(pods)), make([]runtime.Object, 0, len(pods))
	for _, p := range pods {
		whole = append(whole, p)
		metadata = append(metadata, &metav1.PartialObjectMetadata{TypeMeta: p.TypeMeta, ObjectMeta: p.ObjectMeta})
	}
	return &store.Store{
		Dynamic:  dynamicfake.NewSimpleDynamicClient(scheme, whole...),
		Metadata: metadatafake.NewSimpleMetadataClient(scheme, metadata...),
		Clock:    clock.RealClock{},
	}
}

func pod(name, text string) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	p.Name, p.Namespace, p.UID, p.Labels = name, "shop", types.UID(name+"-uid"), map[string]string{"app": "worker"}
	if text != "" {
		p.Annotations = map[string]string{receipt.Key: text}
		p.Labels[receipt.OwnerLabel], p.Labels[receipt.IDLabel] = "deployment.worker", "0"
	}
	return p
}
