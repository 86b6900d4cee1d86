//go:build linux

package alone

import (
	"crypto/rand"
	"strings"
	"testing"
)

func TestOnlyOneProcessOfAPodHoldsIt(t *testing.T) {
	t.Setenv("POD_NAME", "worker-0")
	uid := rand.Text()
	hold := func(pod, uid string) (func(), string) {
		release, err := Hold(pod, uid)
		if err != nil {
			return nil, err.Error()
		}
		return release, ""
	}
	release, said := hold("worker-0", uid)
	if said != "" {
		t.Fatal(said)
	}
	if _, said := hold("worker-0", uid); !strings.Contains(said, "another process of pod worker-0") {
		t.Errorf("a second one heard %q", said)
	}
	for _, other := range [][2]string{{"worker-0", rand.Text()}, {"worker-1", uid}} {
		if free, said := hold(other[0], other[1]); said != "" {
			t.Errorf("pod %v heard %q", other, said)
		} else {
			free()
		}
	}
	release()
	if again, said := hold("worker-0", uid); said != "" {
		t.Errorf("the one after it heard %q", said)
	} else {
		again()
	}
}
