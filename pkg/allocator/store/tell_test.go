package store

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestOneEventNameForEachObjectReasonAndMinute(t *testing.T) {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	name := func(uid types.UID, reason string, now time.Time) string { return eventName(testName, uid, reason, now) }
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

func TestShorten(t *testing.T) {
	if got := shorten("short", 5); got != "short" {
		t.Errorf("%q", got)
	}
	got := shorten(strings.Repeat("ä", 600), maxEventMessage)
	if len(got) > 1024 || // what the API server takes
		!utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-8:])
	}
}

// A name that others chose is a part of log lines and Events.
func TestWhatOthersWroteIsQuotedAndShort(t *testing.T) {
	for text, want := range map[string]string{
		"apps/v1": "apps/v1", "two words": `"two words"`, "\x1b[2J": `"\x1b[2J"`, `a"b`: `"a\"b"`,
		strings.Repeat("\x1b", 300): `"` + strings.Repeat(`\x1b`, 64) + `" and 236 bytes more`,
	} {
		if got := Shown(text); got != want {
			t.Errorf("%.20q is shown as %s, want %s", text, got, want)
		}
	}
}
