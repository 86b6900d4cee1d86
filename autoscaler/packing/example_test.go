package packing_test

import (
	"fmt"

	"github.com/idalloc/idalloc/autoscaler/packing"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Two pods work on four partitions. Partition 1 has become faster, and id 0 cannot work off what it has. The least that helps is to move
// partition 2 to id 1.
func ExamplePack() {
	speeds := []float64{40, 50, 20, 70}
	owners := placement.Owners{0: placement.Of(0, 1, 2), 1: placement.Of(3)}
	packed := packing.Pack(packing.Input{Speeds: speeds, Capacity: 100, Owners: owners})
	fmt.Println(packed.Pods, packed.Owners)
	fmt.Println(packing.Moved(speeds, owners, packed.Owners)/100, "loads of a pod move")
	// Output:
	// 2 {"0":"0-1","1":"2-3"}
	// 0.2 loads of a pod move
}
