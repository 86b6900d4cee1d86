package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpandFollowsTheKubelet(t *testing.T) {
	const a = "$(A)"
	variables := map[string]string{"A": "1", "B": a, "EMPTY": ""}
	for in, want := range map[string]string{
		"":                "",
		"plain":           "plain",
		"$(A)":            "1",
		"x$(A)y$(A)":      "x1y1",
		"$(B)":            "$(A)",
		"[$(EMPTY)]":      "[]",
		"$(UNKNOWN)":      "$(UNKNOWN)",
		"$$(A)":           "$(A)",
		"$$$(A)":          "$1",
		"$A ${A}":         "$A ${A}",
		"$(A":             "$(A",
		"cost: 5$":        "cost: 5$",
		"$(UNKNOWN) $(A)": "$(UNKNOWN) 1",
	} {
		if got := expand(in, variables); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMountPathsAreReplacedAsWholeElements(t *testing.T) {
	m := mounts{{path: "/data/deep", dir: "/real/deep"}, {path: "/data", dir: "/real/data"}}
	for in, want := range map[string]string{
		"/data":                  "/real/data",
		"/data/x":                "/real/data/x",
		"/data/deep/x":           "/real/deep/x",
		"/database":              "/database",
		"/data.bak":              "/data.bak",
		"/var/data":              "/var/data",
		"--dir=/data":            "--dir=/real/data",
		"cat /data/id >/data/b;": "cat /real/data/id >/real/data/b;",
		"no path":                "no path",
	} {
		if got := m.replace(in); got != want {
			t.Errorf("replace(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFieldRefs(t *testing.T) {
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", Namespace: "n", UID: "u", Labels: map[string]string{"a/b": "l"}, Annotations: map[string]string{"c": "a"},
	}, Spec: corev1.PodSpec{NodeName: "node", ServiceAccountName: "sa"}}
	for path, want := range map[string]string{
		"metadata.name": "p", "metadata.namespace": "n", "metadata.uid": "u",
		"metadata.labels['a/b']": "l", "metadata.annotations['c']": "a", "metadata.labels['none']": "",
		"spec.nodeName": "node", "spec.serviceAccountName": "sa", "status.podIP": "127.9.0.1", "status.hostIP": hostIP,
	} {
		got, err := field(object, "127.9.0.1", path)
		if err != nil || got != want {
			t.Errorf("field(%q) = %q, %v, want %q", path, got, err, want)
		}
	}
	if _, err := field(object, "", "spec.unknown"); err == nil {
		t.Error("an unknown field path is no error")
	}
}

func TestImagesAreFoundWithoutTag(t *testing.T) {
	n := &Node{options: Options{Images: map[string]string{"example.com:5000/idalloc": "/bin/idalloc"}}}
	for image, want := range map[string]bool{
		"example.com:5000/idalloc":                true,
		"example.com:5000/idalloc:v1":             true,
		"example.com:5000/idalloc:v1@sha256:0123": true,
		"example.com:5000/other":                  false,
		"idalloc":                                 false,
	} {
		if _, got := n.program(image); got != want {
			t.Errorf("program(%q) found: %v, want %v", image, got, want)
		}
	}
}

func TestAddressesAreUniqueAndComeBack(t *testing.T) {
	a, err := newAddresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	b, err := newAddresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if a.block == b.block {
		t.Errorf("two nodes share the block %d", a.block)
	}
	seen := map[string]bool{}
	for range 600 {
		address, err := a.take()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Fatalf("%s was given twice", address)
		}
		seen[address] = true
	}
	for address := range seen {
		a.giveBack(address)
	}
	if len(a.used) != 0 {
		t.Errorf("%d addresses are still taken", len(a.used))
	}
}

func TestBackOffDoublesAndStartsAnewAfterALongRun(t *testing.T) {
	b := newBackoff(1600 * time.Millisecond)
	for _, want := range []int64{100, 200, 400, 800, 1600, 1600} {
		if got := b.next(0).Milliseconds(); got != want {
			t.Errorf("got %d ms, want %d ms", got, want)
		}
	}
	if got := b.next(time.Minute); got != 100*time.Millisecond {
		t.Errorf("after a long run: %v", got)
	}
}
