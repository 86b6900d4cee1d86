package object

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"testing"
)

// odd are values in which encoders and comparisons go wrong.
func odd() []any {
	return []any{
		nil, true, false, "", "a", "<", "<&>\"\\\n\u2028ü", "\x7f", int64(0), int64(-1 << 62), 1.5, 1e300, []any{}, []any(nil), []any{"a", int64(1), nil},
		Object{}, Object(nil), Object{"a": nil}, Object{"b": "1"}, Object{"a": "1", "b": Object{"c\n": []any{Object{}}}}, Object{Metadata: Object{"x": "1"}},
	}
}

func TestEncodeIsMarshal(t *testing.T) {
	for _, value := range odd() {
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := Encode(value); !bytes.Equal(got, want) {
			t.Errorf("%#v is %s, want %s", value, got, want)
		}
	}
}

// reflected is equalBut as reflection has it.
func reflected(a, b Object, ignored ...string) bool {
	without := func(o Object, keys ...string) Object {
		o = maps.Clone(o)
		for _, key := range keys {
			delete(o, key)
		}
		return o
	}
	return reflect.DeepEqual(without(a, Metadata), without(b, Metadata)) &&
		reflect.DeepEqual(without(At(a, Metadata), ignored...), without(At(b, Metadata), ignored...))
}

func TestEqualButIsDeepEqual(t *testing.T) {
	values := odd()
	objects := make([]Object, 0, 5+3*len(values))
	objects = append(objects, nil, Object{}, Object{Metadata: Object{}}, Object{Metadata: Object{"y": "1"}}, Object{Metadata: Object{"y": "1", "x": "2"}})
	for _, value := range values {
		objects = append(objects, Object{"spec": value}, Object{Metadata: Object{"x": value}}, Object{Metadata: Object{"annotations": value}})
	}
	for _, a := range objects {
		for _, b := range objects {
			if got, want := EqualBut(a, b, "x"), reflected(a, b, "x"); got != want {
				t.Errorf("%#v and %#v: equal is %v, want %v", a, b, got, want)
			}
		}
	}
}
