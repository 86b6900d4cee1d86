package assignment

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

func TestEncodeIsCanonical(t *testing.T) {
	got := Slots{10: "c", 0: "worker-5d9-x2", 2: "b"}.Encode()
	if want := `{"0":"worker-5d9-x2","2":"b","10":"c"}`; got != want {
		t.Errorf("Encode() = %s, want %s: numeric key order, no spaces", got, want)
	}
	if got := (Slots)(nil).Encode(); got != "{}" {
		t.Errorf("an empty assignment encodes as %s, want {}", got)
	}
}

func TestParseSlotsRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, quotes string }{
		"nothing":             {``, `end of JSON input): ""`},
		"not JSON":            {`worker`, `worker`},
		"null":                {`null`, `null`},
		"a list":              {`["a"]`, `[\"a\"]`},
		"a number":            {`7`, `7`},
		"a negative id":       {`{"-1":"a"}`, `-1`},
		"a leading zero":      {`{"01":"a"}`, `01`},
		"an exponent":         {`{"1e3":"a"}`, `1e3`},
		"a word for an id":    {`{"x":"a"}`, `x`},
		"a sign":              {`{"+1":"a"}`, `+1`},
		"an empty id":         {`{"":"a"}`, `""`},
		"an id beyond int32":  {`{"2147483647":"a"}`, `2147483647`},
		"an id beyond int64":  {`{"99999999999999999999":"a"}`, `9999`},
		"an id twice":         {`{"0":"a","0":"b"}`, `an id stands twice`},
		"a pod twice":         {`{"0":"a","1":"a"}`, `"a"`},
		"a number for a pod":  {`{"0":5}`, `cannot unmarshal number`},
		"null for a pod":      {`{"0":null}`, `id 0`},
		"an object for a pod": {`{"0":{}}`, `cannot unmarshal object`},
		"an empty pod":        {`{"0":""}`, `""`},
		"a pod with a space":  {`{"0":"a b"}`, `a b`},
		"a pod in capitals":   {`{"0":"A"}`, `A`},
		"a pod with a quote":  {`{"0":"a\"b"}`, `a`},
		"a dot for a pod":     {`{"0":"."}`, `"."`},
		"two dots for a pod":  {`{ "0": ".." }`, `".."`},
		"a dot at the end":    {`{"0":"a."}`, `"a."`},
		"a dot at the start":  {`{"0":".a"}`, `".a"`},
		"an empty label":      {`{"0":"a..b"}`, `"a..b"`},
		"a dash at the start": {`{"0":"-a"}`, `"-a"`},
		"a dash at the end":   {`{"0":"a-"}`, `"a-"`},
		"a label that ends":   {`{"0":"a-.b"}`, `"a-.b"`},
		"no end":              {`{"0":"a"`, `"a`},
		"something behind":    {`{"0":"a"}{}`, `{}`},
		"a broken tail":       {`{"0":"a"},`, `,`},
		"a missing comma":     {`{"0":"a" "1":"b"}`, `after object key:value pair`},
		"no space either":     {`{"0":"a""1":"b"}`, `after object key:value pair`},
		"no start":            {`"0":"a"}`, `invalid character`},
		"only an end":         {`}`, `invalid character`},
		"no quote":            {`{0":"a"}`, `invalid character`},
		"an end behind an id": {`{"0":`, `unexpected end`},
		"the same entry":      {`{"0":"a","0":"a"}`, `an id stands twice`},
		"an id beyond uint64": {`{"18446744073709551616":"a"}`, `not an id`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSlots(tc.text)
			if err == nil {
				t.Fatalf("ParseSlots(%s) = %v, want an error", tc.text, got)
			}
			if !strings.Contains(err.Error(), tc.quotes) {
				t.Errorf("the error does not quote the offending part %s: %v", tc.quotes, err)
			}
		})
	}
}

// A name is valid where Kubernetes says so.
func TestNamesAreDNSSubdomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.RuneFrom([]rune("az09-.A_é")), 0, 260, -1).Draw(t, "name")
		if got, want := validName(name), len(validation.IsDNS1123Subdomain(name)) == 0; got != want {
			t.Fatalf("validName(%q) = %t, Kubernetes says %t", name, got, want)
		}
	})
	if longest := strings.Repeat("a", 253); !validName(longest) || validName(longest+"a") {
		t.Error("a name may have 253 characters")
	}
}

func TestQuoteIsCutBehind80Bytes(t *testing.T) {
	whole := strings.Repeat("a", 80)
	for text, want := range map[string]string{whole: strconv.Quote(whole), whole + "b": strconv.Quote(whole + "…")} {
		if got := quote(text); got != want {
			t.Errorf("quote(%s) = %s", text, got)
		}
	}
}

func TestOfFindsTheLowestID(t *testing.T) {
	s := Slots{3: "b"}
	for id := 5; id < 100; id++ {
		s[id] = "a"
	}
	if id, ok := s.Of("a"); id != 5 || !ok {
		t.Errorf("a has the id %d, %t", id, ok)
	}
	if id, ok := s.Of("c"); ok {
		t.Errorf("c has the id %d", id)
	}
}

func genSlots() *rapid.Generator[Slots] {
	return rapid.Custom(func(t *rapid.T) Slots {
		ids := rapid.SliceOfDistinct(rapid.IntRange(0, receipt.MaxID), rapid.ID[int]).Draw(t, "ids")
		s := make(Slots, len(ids))
		for i, id := range ids {
			s[id] = "worker-" + strconv.Itoa(i)
		}
		return s
	})
}

func TestSlotsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genSlots().Draw(t, "slots")
		got, err := ParseSlots(want.Encode())
		if err != nil || !maps.Equal(got, want) {
			t.Fatalf("ParseSlots(Encode(%v)) = %v, %v", want, got, err)
		}
	})
}

// What ParseSlots accepts, encoding/json accepts and reads alike, and it survives a round trip.
func FuzzParseSlots(f *testing.F) {
	for _, seed := range []string{`{}`, `{"0":"a"}`, `{"0":"a","1":"b"}`, `{"0":"a","0":"b"}`, `[]`, `{"01":"a"}`, `{"0":"a"} x`, "{\"0\":\"\u0000\"}",
		`{"+1":"a"}`, `{"0":"a",}`, `{"0":"a","1":"a"}`, `{"1":"a","0":"b"}`, `{"0":"a","1":"b"}}`, `{"00":"a"}`, `{"":"a"}`, `{"-0":"a"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slots, err := ParseSlots(text)
		slow, slowErr := parseAny(text)
		if (err == nil) != (slowErr == nil) || !maps.Equal(slots, slow) {
			t.Fatalf("ParseSlots(%q) = %v, %v, but without its fast path %v, %v", text, slots, err, slow, slowErr)
		}
		if err != nil {
			return
		}
		var plain map[string]string
		if err := json.Unmarshal([]byte(text), &plain); err != nil {
			t.Fatalf("ParseSlots accepts %q, encoding/json does not: %v", text, err)
		}
		if len(plain) != len(slots) {
			t.Fatalf("ParseSlots(%q) = %v, encoding/json reads %v", text, slots, plain)
		}
		for id, name := range slots {
			if plain[strconv.Itoa(id)] != name {
				t.Fatalf("ParseSlots(%q) = %v, encoding/json reads %v", text, slots, plain)
			}
		}
		again, err := ParseSlots(slots.Encode())
		if err != nil || !maps.Equal(again, slots) {
			t.Fatalf("%q does not survive a round trip: %v, %v", text, again, err)
		}
	})
}
