package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/framer"
)

// frames reads r to its end with room for so many bytes at once.
func frames(r io.ReadCloser, room int) (all []string, err error) {
	var frame []byte
	for {
		part := make([]byte, room)
		n, err := r.Read(part)
		frame = append(frame, part[:n]...)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err == nil:
			all, frame = append(all, string(frame)), nil
		case !errors.Is(err, io.ErrShortBuffer):
			return all, err
		}
	}
}

func TestEventsAreFramed(t *testing.T) {
	for name, test := range map[string]struct {
		stream string
		want   []string
		err    error
	}{
		"nothing":               {"", nil, nil},
		"one":                   {`{"a":1}`, []string{`{"a":1}`}, nil},
		"a line each":           {"{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}, nil},
		"with nothing between":  {`{}{"b":{}}`, []string{`{}`, `{"b":{}}`}, nil},
		"over several lines":    {"{\n \"a\": [\n{}\n]\n}\r\n\t{}", []string{"{\n \"a\": [\n{}\n]\n}", "{}"}, nil},
		"braces in a text":      {`{"a":"}{\"}"}{"b":"\\"}`, []string{`{"a":"}{\"}"}`, `{"b":"\\"}`}, nil},
		"cut off":               {`{}{"a":"`, []string{`{}`}, io.ErrUnexpectedEOF},
		"a page of some proxy":  {"<html>", nil, errNoObject},
		"a text of some server": {`"gone"`, nil, errNoObject},
	} {
		for _, room := range []int{1, 2, 7, 4096} {
			for _, slow := range []bool{false, true} {
				var r io.Reader = strings.NewReader(test.stream)
				if slow {
					r = iotest.OneByteReader(r)
				}
				got, err := frames(eventFramer{}.NewFrameReader(io.NopCloser(r)), room)
				if !slices.Equal(got, test.want) || !errors.Is(err, test.err) {
					t.Errorf("%s, room for %d, slow %t: %q, %v, want %q, %v", name, room, slow, got, err, test.want, test.err)
				}
			}
		}
	}
}

// FuzzFrames compares with apimachinery's framer: whatever that one reads as objects is read as the same here.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("{\"type\":\"ADDED\",\"object\":{\"a\":\"\\\"}\"}}\n{}\n"), 3)
	f.Add([]byte(`{"a":[[{}],"]"]}  {}x`), 100)
	f.Fuzz(func(t *testing.T, stream []byte, room int) {
		room = max(1, min(room, 1<<12))
		want, _ := frames(framer.NewJSONFramedReader(io.NopCloser(bytes.NewReader(stream))), 1<<16)
		got, err := frames(eventFramer{}.NewFrameReader(io.NopCloser(bytes.NewReader(stream))), room)
		if i := slices.IndexFunc(want, func(s string) bool { return s[0] != '{' }); i >= 0 {
			want = want[:i] // no event
		}
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	})
}

// FuzzSplitEvent: an event is split only where decoding it finds the same, or the object cannot be decoded.
func FuzzSplitEvent(f *testing.F) {
	f.Add([]byte(`{"type":"MODIFIED","object":{"kind":"Deployment"}}`))
	f.Add([]byte(`{"type":"ERROR","object":{"kind":"Status"},"more":{}}`))
	f.Add([]byte(`{"type":"ADDED","object":{"a":"\",\"object\":"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		event, ok := splitEvent(data)
		if !ok || !json.Valid(event.Object.Raw) {
			return
		}
		var want metav1.WatchEvent
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("%q was split; decoding: %v", data, err)
		}
		if event.Type != want.Type || !bytes.Equal(bytes.TrimSpace(event.Object.Raw), want.Object.Raw) {
			t.Fatalf("%q: %s %q, want %s %q", data, event.Type, event.Object.Raw, want.Type, want.Object.Raw)
		}
	})
}
