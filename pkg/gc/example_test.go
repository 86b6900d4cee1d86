package gc_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
)

// Survey lists the live pods of an owner without changing anything. A program in a cluster gets its Store from store.New, and the owner from
// Store.Get.
func ExampleSurvey() {
	owner := store.Owner{
		Ref:      store.Ref{APIVersion: "apps/v1", Kind: store.Deployment, Namespace: "shop", Name: "worker"},
		Selector: "app=worker",
	}
	s := storeWith(
		pod("worker-a", `{"uid":"worker-a-uid","owner":"Deployment/worker","id":0,"write":"1"}`),
		pod("worker-c", ""),
	)

	pods, err := gc.Survey(context.Background(), s, owner)
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

// Sweep frees the slots of dead holders. This example needs a cluster, so it only compiles.
func ExampleSweep() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	s, err := store.New(config, clock.RealClock{})
	if err != nil {
		log.Fatal(err)
	}
	owner, err := store.ParseRef("deployment/worker", "shop")
	if err != nil {
		log.Fatal(err)
	}
	retry := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 5}

	result, err := gc.Sweep(context.Background(), s, owner, retry, false)
	if err != nil {
		log.Fatal(err)
	}
	for _, victim := range result.Victims {
		fmt.Printf("freed id %d of %s: %s\n", victim.ID, victim.Pod, victim.Reason)
	}
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
