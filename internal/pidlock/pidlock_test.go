//go:build linux

package pidlock

import (
	"crypto/rand"
	"strings"
	"testing"
)

func TestOnlyOneProcessOfAPodHoldsIt(t *testing.T) {
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
	if free, said := hold("worker-0", rand.Text()); said != "" {
		t.Errorf("another pod of that name heard %q", said)
	} else {
		free()
	}
	release()
	if again, said := hold("worker-0", uid); said != "" {
		t.Errorf("the one after it heard %q", said)
	} else {
		again()
	}
}

func TestTheEnvironmentSaysInWhichPodAProcessRuns(t *testing.T) {
	for variable, other := range map[string]string{"POD_NAME": "IDALLOC_POD_NAME", "IDALLOC_POD_NAME": "POD_NAME"} {
		t.Setenv(variable, "worker-0")
		t.Setenv(other, "")
		if !Inside("worker-0") || Inside("worker-1") {
			t.Errorf("%s=worker-0: in worker-0 %t, in worker-1 %t", variable, Inside("worker-0"), Inside("worker-1"))
		}
	}
}
