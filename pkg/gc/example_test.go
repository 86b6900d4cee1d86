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

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
)

// Survey lists the dead holders of an owner without changing anything. A program in a cluster gets its Store from store.New,
// and the owner from Store.Get.
func ExampleSurvey() {
	owner := store.Owner{
		Ref:      store.Ref{APIVersion: "apps/v1", Kind: store.Deployment, Namespace: "shop", Name: "worker"},
		Selector: "app=worker",
		Record: assignment.Record{State: assignment.State{
			Slots: assignment.Slots{0: "worker-a", 1: "worker-b", 2: "worker-c"},
			UIDs:  assignment.Slots{0: "3f1c09be", 1: "90d2a7c4", 2: "77aa01e5"},
		}},
	}
	s := storeWith(
		pod("worker-a", "3f1c09be-1", corev1.PodRunning),
		pod("worker-c", "77aa01e5-1", corev1.PodRunning),
	)

	census, err := gc.Survey(context.Background(), s, owner)
	if err != nil {
		log.Fatal(err)
	}
	for _, victim := range census.Dead {
		fmt.Printf("id %d: %s: %s\n", victim.ID, victim.Pod, victim.Reason)
	}
	fmt.Println(len(census.Live), "pods live")
	// Output:
	// id 1: worker-b: its pod is gone
	// 2 pods live
}

// Sweep frees the slots of dead holders. This example needs a cluster, so it only compiles.
func ExampleSweep() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	s, err := store.New(config, assignment.DefaultKey, clock.RealClock{})
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
		Key:      assignment.DefaultKey,
		Clock:    clock.RealClock{},
	}
}

func pod(name, uid string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Status: corev1.PodStatus{Phase: phase}}
	p.Name, p.Namespace, p.UID, p.Labels = name, "shop", types.UID(uid), map[string]string{"app": "worker"}
	return p
}
