package placement

import (
	"strings"
	"testing"
)

func TestATextThatIsNotCanonicalIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"0-15,40,":              `"" is no range`,
		",":                     `"" is no range`,
		" ":                     `" " is no range`,
		"a":                     `"a" is no range`,
		"1-":                    `"1-" is no range`,
		"-1":                    `"-1" is no range`,
		"1-2-3":                 `"1-2-3" is no range`,
		"3-1":                   `"3-1" is no range`,
		"+1":                    `"+1" is no range`,
		"01":                    `"01" is no range`,
		"1 ":                    `"1 " is no range`,
		"٣":                     `is no range`,
		"7-7":                   `which is "7"`,
		"0-3,4":                 `which is "0-4"`,
		"0-3,2-5":               `which is "0-5"`,
		"5,1":                   `which is "1,5"`,
		"1,1":                   `which is "1"`,
		"64":                    "partition 64 is not below 64",
		"0-999999999":           "partition 999999999 is not below 64",
		"99999999999999999999":  "is no range",
		"0-9223372036854775807": "is no range",
	} {
		if s, err := Parse(text, 64); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q reads as %q: %v, want an error that says %s", text, s, err, says)
		}
	}
}

func TestAPersonMayWriteASetInAnyOrder(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "  ": "", "5, 1": "1,5", "0-3,4-7": "0-7", " 2 - 3 ,7-7": "2-3,7",
	} {
		if s, err := parseAnyOrder(text, 64); err != nil || s.String() != want {
			t.Errorf("%q reads as %q: %v, want %q", text, s, err, want)
		}
	}
	for _, text := range []string{"1,1", "0-5,3", "3,0-5", "64", "x", "1,,2"} {
		if s, err := parseAnyOrder(text, 64); err == nil {
			t.Errorf("%q reads as %q", text, s)
		}
	}
}

func TestAnErrorQuotesOnlyTheStartOfALongText(t *testing.T) {
	_, err := Parse(strings.Repeat("1", 1000)+"x", 64)
	if err == nil || len(err.Error()) > maxError || !strings.Contains(err.Error(), "111…") {
		t.Errorf("the error is %v", err)
	}
}

// maxError is what an error may have in bytes, so that it fits into an Event.
const maxError = 400

// Whatever the text is, there is a set with exactly this text, or a short error.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "0-15,40", "7-7", "0-3,4", "1,1", "5,1", "99999999999", "0-4095", "-", strings.Repeat("\x90", maxError)} {
		f.Add(text, MaxCount)
	}
	f.Fuzz(func(t *testing.T, text string, count int) {
		s, err := Parse(text, count)
		if err != nil {
			if len(err.Error()) > maxError {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if s.String() != text {
			t.Fatalf("%q reads as %q", text, s)
		}
		if !s.Subset(Between(0, count-1)) {
			t.Fatalf("%q is not below %d", s, count)
		}
		if loose, err := parseAnyOrder(text, count); err != nil || !loose.Equal(s) {
			t.Fatalf("%q reads in any order as %q: %v", text, loose, err)
		}
	})
}
