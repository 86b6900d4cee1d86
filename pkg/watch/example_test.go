package watch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/watch"
)

// Resolve climbs from a Deployment's pod over its ReplicaSet. A program in a cluster gets its Store from store.New, and the
// pod from Store.GetPod.
func ExampleResolve() {
	replicaSet := object("ReplicaSet", "worker-5d9", "Deployment", "worker")
	pod := object("Pod", "worker-5d9-x2", "ReplicaSet", "worker-5d9")
	s := storeWith(replicaSet)

	owner, err := watch.Resolve(context.Background(), s, pod)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(owner)
	// Output: Deployment/worker
}

// A stream tells when an object has changed. Its reader then asks for the newest moment of the object.
func ExampleFollow() {
	ctx, cancel := context.WithCancel(context.Background())
	events := apiwatch.NewFake()
	pods := watch.Follow(ctx, "pods", podAPI(events), watch.ByName("worker-0"), time.Now, logr.Discard())

	go func() {
		labelled := object("Pod", "worker-0", "StatefulSet", "worker")
		labelled.Labels, labelled.ResourceVersion = map[string]string{"color": "blue"}, "2"
		events.Modify(labelled)
	}()
	for range pods.Changed() {
		pod, known := pods.Get("worker-0")
		if known && pod.Labels["color"] != "" {
			fmt.Println(pod.Name, "is", pod.Labels["color"])
			break
		}
	}

	cancel()
	<-pods.Done()
	// Output: worker-0 is blue
}

// Owner follows the assignment of a workload. This example needs a cluster, so it only compiles.
func ExampleOwner() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	s, err := store.New(config, clock.RealClock{})
	if err != nil {
		log.Fatal(err)
	}
	ref, err := kinds.ParseRef("deployment/worker", "shop")
	if err != nil {
		log.Fatal(err)
	}

	stream := watch.Owner(context.Background(), s, ref, logr.Discard())
	for range stream.Changed() {
		owner, known, err := stream.Latest()
		switch since, down := stream.Stale(); {
		case err != nil:
			log.Print(err)
		case down != nil:
			log.Printf("no news since %s: %v", since, down)
		case known:
			log.Printf("%d replicas, assignment %s", owner.Count, owner.Record.State.Slots.Encode())
		}
	}
}

// podAPI stands for an API server that has the pod worker-0. Against a real one, List and Watch call a client.
func podAPI(events apiwatch.Interface) watch.API[*metav1.PartialObjectMetadata] {
	return watch.API[*metav1.PartialObjectMetadata]{
		List: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			list.Items = append(list.Items, *object("Pod", "worker-0", "StatefulSet", "worker"))
			return list, nil
		},
		Watch: func(_ context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, errors.New("this server has no streaming lists")
			}
			return events, nil
		},
		Type: &metav1.PartialObjectMetadata{},
	}
}

// object returns the metadata of an object in namespace shop that a controller owns.
func object(kind, name, controllerKind, controller string) *metav1.PartialObjectMetadata {
	apiVersion := "apps/v1"
	if kind == "Pod" {
		apiVersion = "v1"
	}
	isController := true
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "shop", ResourceVersion: "1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: controllerKind, Name: controller, Controller: &isController}},
		},
	}
}

// storeWith returns a Store whose API server has these objects.
func storeWith(objects ...runtime.Object) *store.Store {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		log.Fatal(err)
	}
	return &store.Store{Metadata: metadatafake.NewSimpleMetadataClient(scheme, objects...), Clock: clock.RealClock{}}
}
