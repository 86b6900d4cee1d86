package kubeevent

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestOneEventNameForEachObjectReasonAndMinute(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	name := func(uid types.UID, reason string, now time.Time) string { return eventName("worker", uid, reason, now) }
	first := name("u", "AssignmentChanged", at)
	if same := name("u", "AssignmentChanged", at.Add(59*time.Second)); same != first {
		t.Errorf("%s and %s in one minute", first, same)
	}
	for what, other := range map[string]string{
		"the next minute": name("u", "AssignmentChanged", at.Add(time.Minute)),
		"another reason":  name("u", "ReceiptDamaged", at),
		"another object":  name("v", "AssignmentChanged", at),
	} {
		if other == first {
			t.Errorf("%s has the same name, %s", what, other)
		}
	}
}

func TestEventNamesAreValidForTheLongestNames(t *testing.T) {
	for _, name := range []string{"w", strings.Repeat("w", 253), strings.Repeat("w", 235) + "-." + strings.Repeat("w", 16)} {
		got := eventName(name, "u", "AssignmentChanged", time.Now())
		if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 {
			t.Errorf("%s: %v", got, problems)
		}
	}
}
