package differential

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

//nolint:gochecknoglobals // flags
var (
	seedFlag   = flag.Uint64("seed", 1, "what the steps are drawn from")
	stepsFlag  = flag.Int("steps", 600, "how many steps to compare")
	lengthFlag = flag.Int("length", 40, "how many steps a sequence has")
)

// bench makes the two sides of a sequence.
type bench func(ctx context.Context) (a, b *side, err error)

// limit bounds one sequence, which takes less than a second of a processor.
const limit = 2 * time.Minute

// TestTheSimulatedServerAnswersAsTheRealOne compares the two, step by step.
func TestTheSimulatedServerAnswersAsTheRealOne(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{NoControllers: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	}()
	// A restarted server knows nothing of the first resourceVersions: a watch from there is expired.
	cp.KillAPIServer()
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	both := func(ctx context.Context) (a, b *side, err error) {
		made++
		if a, err = simulated(ctx, simulator()); err != nil {
			return nil, nil, err
		}
		b, err = realSide(ctx, cp.Config(), client, fmt.Sprintf("sequence-%d", made))
		return a, b, err
	}
	begun := time.Now()
	steps, sequences := 0, 0
	for number := uint64(0); steps < *stepsFlag; number++ {
		sequence := newGenerator(*seedFlag, number).sequence(*lengthFlag)
		if different := compare(t, both, sequence); different != "" {
			t.Fatalf("-seed=%d, sequence %d:\n%s", *seedFlag, number, shrunk(t, both, sequence))
		}
		steps += len(sequence)
		sequences++
	}
	t.Logf("%d steps in %d sequences took %s", steps, sequences, time.Since(begun).Round(time.Millisecond))
}

// realSide returns a side in a new namespace of the real server.
func realSide(ctx context.Context, config *rest.Config, client kubernetes.Interface, namespace string) (*side, error) {
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return newSide(ctx, config, namespace)
}

// compare runs a sequence on two new sides and returns the steps up to the first difference, empty if there is none.
func compare(t *testing.T, both bench, sequence []step) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	a, b, err := both(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, st := range sequence {
		for _, s := range []*side{a, b} {
			if err := st.do(ctx, s); err != nil {
				t.Fatalf("step %d, %s, namespace %s: %v", i, st.about, s.namespace, err)
			}
		}
		as, bs := a.take(), b.take()
		if !slices.Equal(as, bs) {
			return report(sequence[:i+1], as, bs)
		}
	}
	return ""
}

// report lists the steps, and the lines in which the sides differ after the last one.
func report(steps []step, simulator, server []string) string {
	var out strings.Builder
	for i, st := range steps {
		fmt.Fprintf(&out, "%3d. %s\n", i+1, st.about)
	}
	for i := range max(len(simulator), len(server)) {
		was, is := "nothing", "nothing"
		if i < len(simulator) {
			was = simulator[i]
		}
		if i < len(server) {
			is = server[i]
		}
		if was == is {
			continue
		}
		fmt.Fprintf(&out, "  simulated: %s\n  real:      %s\n", was, is)
	}
	return out.String()
}

// shrunk returns the report of a sequence that differs, without the steps that it does not need.
func shrunk(t *testing.T, both bench, sequence []step) string {
	t.Helper()
	out := compare(t, both, sequence)
	for i := range slices.Backward(sequence) {
		without := slices.Delete(slices.Clone(sequence), i, i+1)
		if smaller := compare(t, both, without); smaller != "" {
			sequence, out = without, smaller
		}
	}
	return out
}
