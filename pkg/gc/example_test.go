package gc_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
)

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
	owner, err := kinds.ParseRef("deployment/worker", "shop")
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
