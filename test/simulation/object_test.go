package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

// odd are values in which encoders and comparisons go wrong.
func odd() []any {
	return []any{
		nil, true, false, "", "a", "<", "<&>\"\\\n\u2028ü", "\x7f", int64(0), int64(-1 << 62), 1.5, 1e300, []any{}, []any(nil), []any{"a", int64(1), nil},
		object{}, object(nil), object{"a": nil}, object{"b": "1"}, object{"a": "1", "b": object{"c\n": []any{object{}}}}, object{metadata: object{"x": "1"}},
	}
}

func TestEncodeIsMarshal(t *testing.T) {
	for _, value := range odd() {
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(value); !bytes.Equal(got, want) {
			t.Errorf("%#v is %s, want %s", value, got, want)
		}
	}
}

// reflected is equalBut as reflection has it.
func reflected(a, b object, ignored ...string) bool {
	without := func(o object, keys ...string) object {
		o = maps.Clone(o)
		for _, key := range keys {
			delete(o, key)
		}
		return o
	}
	return reflect.DeepEqual(without(a, metadata), without(b, metadata)) &&
		reflect.DeepEqual(without(at(a, metadata), ignored...), without(at(b, metadata), ignored...))
}

func TestEqualButIsDeepEqual(t *testing.T) {
	values := odd()
	objects := make([]object, 0, 5+3*len(values))
	objects = append(objects, nil, object{}, object{metadata: object{}}, object{metadata: object{"y": "1"}}, object{metadata: object{"y": "1", "x": "2"}})
	for _, value := range values {
		objects = append(objects, object{"spec": value}, object{metadata: object{"x": value}}, object{metadata: object{"annotations": value}})
	}
	for _, a := range objects {
		for _, b := range objects {
			if got, want := equalBut(a, b, "x"), reflected(a, b, "x"); got != want {
				t.Errorf("%#v and %#v: equal is %v, want %v", a, b, got, want)
			}
		}
	}
}

func TestALineOfTheHistory(t *testing.T) {
	for _, at := range []time.Duration{0, 1, time.Second - 1, time.Minute, 12345*time.Second + 6, 1e6 * time.Second} {
		for _, about := range [][]string{nil, {"a"}, {"pod#1", "", "x"}} {
			want := fmt.Sprintf("%14.9f %-9s %s\n", at.Seconds(), "request", strings.Join(about, " "))
			if got := string(appendLine(nil, at, "request", about)); got != want {
				t.Errorf("the line is %q, want %q", got, want)
			}
		}
	}
	if got := string(appendLine(nil, time.Second, "longer than usual", nil)); got != "   1.000000000 longer than usual \n" {
		t.Errorf("the line is %q", got)
	}
}
