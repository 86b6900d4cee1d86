package main

import (
	"strings"
	"testing"
)

func TestEveryPodHasOneID(t *testing.T) {
	two := []claimed{{pod: "a", id: 0}, {pod: "b", id: 1}}
	type owner = map[string]string
	for name, c := range map[string]struct {
		all   []claimed
		owner owner
		want  string
	}{
		"all agree":                {two, owner{"0": "a", "1": "b"}, ""},
		"a write was lost":         {two, owner{"1": "b"}, "a believes"},
		"one id for two":           {[]claimed{{pod: "a", id: 1}, {pod: "a", id: 1}}, owner{"0": "b", "1": "a"}, "a believes"},
		"an id above the rest":     {[]claimed{{pod: "a", id: 0}, {pod: "b", id: 2}}, owner{"0": "a", "2": "b"}, "b believes"},
		"a stranger":               {two, owner{"0": "a", "1": "c"}, `says "c"`},
		"nothing":                  {two, nil, "a believes"},
		"a slot of no pod":         {two, owner{"0": "a", "1": "b", "2": "c"}, "names 3 ids for 2 pods"},
		"stopped before it had it": {[]claimed{{pod: "a", id: 0}, {pod: "b", stopped: true}}, owner{"0": "a"}, ""},
		"stopped before it knew":   {[]claimed{{pod: "a", id: 0}, {pod: "b", stopped: true}}, owner{"0": "a", "1": "b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := verify(c.all, c.owner)
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}
