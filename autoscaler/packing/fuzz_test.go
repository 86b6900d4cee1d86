package packing

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/idalloc/idalloc/pkg/placement"
)

// FuzzPack packs whatever comes, twice. Each partition takes nine bytes: the id that owns it, and its speed.
func FuzzPack(f *testing.F) {
	const each = 9
	part := func(id byte, speed float64) []byte {
		return append([]byte{id}, binary.LittleEndian.AppendUint64(nil, math.Float64bits(speed))...)
	}
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	f.Add([]byte(nil), 1.0, 0.0, 0, 0)
	f.Add(join(part(0, 60), part(0, 60), part(1, 30)), 100.0, 0.0, 0, 0)
	f.Add(join(part(0, 30), part(1, 30), part(2, 90)), 100.0, 1.0, 0, 0)
	f.Add(join(part(0, 1e18), part(0, 0), part(0, 5e-324), part(7, -1)), 100.0, 0.0, 2, 0)
	f.Add(join(part(3, math.NaN()), part(255, math.Inf(1)), part(0, 80), part(1, 80)), 100.0, 0.0, 0, 1)
	f.Add(join(part(0, 50), part(1, 50), part(2, 50), part(3, 50), part(4, 99)), 100.0, 0.0, 0, 3)
	f.Add(join(part(0, 1), part(1, 1)), 0.0, math.NaN(), 9, 4)
	f.Fuzz(func(t *testing.T, data []byte, capacity, margin float64, least, most int) {
		in := Input{Capacity: capacity, Margin: margin, Min: min(least, 1000), Max: most}
		lists := map[int][]int{}
		for ; len(data) >= each && len(in.Speeds) < 200; data = data[each:] {
			if id := int(data[0]); id < 255 {
				lists[id] = append(lists[id], len(in.Speeds))
			}
			in.Speeds = append(in.Speeds, math.Float64frombits(binary.LittleEndian.Uint64(data[1:each])))
		}
		in.Owners = ownersOf(lists)
		out := Pack(in)
		if _, err := placement.ParseOwners(out.Owners.String(), max(len(in.Speeds), 1)); err != nil || len(out.Owners) != out.Pods {
			t.Fatalf("%d pods: %s: %v", out.Pods, out.Owners, err)
		}
		n := 0
		for id, sum := range loads(in, out.Owners) {
			n += out.Owners[id].Len()
			if sum > room && out.Owners[id].Len() > 1 && in.Max <= 0 {
				t.Fatalf("id %d holds too much: %s", id, out.Owners)
			}
		}
		if n != len(in.Speeds) {
			t.Fatalf("%d of %d partitions are owned: %s", n, len(in.Speeds), out.Owners)
		}
		in.Owners = out.Owners
		if again := Pack(in); !again.Owners.Equal(out.Owners) {
			t.Fatalf("packed again, %s becomes %s", out.Owners, again.Owners)
		}
	})
}
